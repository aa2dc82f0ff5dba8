"""The contract of every line of DATASETS, and what each archive's arrays must be."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from attcem.data import DATASETS, default_root, get_data, load_data
from attcem.data.fashion import Embedded
from attcem.data.source import Source
from tests.data import tiny_archives as tiny

ARCHIVES = {
    "cifar10": tiny.cifar10_python,
    "cifar100": tiny.cifar100_python,
    "tinyimagenet": tiny.tinyimagenet,
    "facescrub": tiny.facescrub,
    "orl": tiny.orl,
}


def own_npz(path: Path) -> str:
    np.savez(path / "own.npz", x_train=tiny.pictures(60, 28, 30, 3), y_train=np.arange(60) % 3)
    return f"npz:{path / 'own.npz'}"


def own_folder(path: Path) -> str:
    for label, name in enumerate(("cat", "dog")):
        (path / "own" / name).mkdir(parents=True)
        for index, image in enumerate(tiny.pictures(10, 30, 28, 1, seed=label)):
            (path / "own" / name / f"{index}.png").write_bytes(tiny.encode(image))
    return f"imagefolder:{path / 'own'}"


MADE_HERE = {name: lambda path, name=name: name for name in ("fashion", "clutter")}
GIVEN = {"npz": own_npz, "imagefolder": own_folder, **MADE_HERE}


@pytest.fixture
def few_embedded(monkeypatch):
    """Some of the pictures that come with the package: whole data sets have tests of their own."""
    read = Embedded.read

    def some(*given):
        whole = read(*given)
        arrays = ("x_train", "y_train", "x_test", "y_test")
        return replace(whole, **{name: getattr(whole, name)[::20] for name in arrays})

    monkeypatch.setattr(Embedded, "read", some)


@pytest.fixture
def name_of(tmp_path):
    """Make a data set loadable from tmp_path/cache and give the name to load it by."""

    def prepare(name: str) -> str:
        if name in GIVEN:
            return GIVEN[name](tmp_path)
        archive = ARCHIVES[name](tmp_path / "archive")
        written = get_data(name, root=tmp_path / "cache", source=archive, checksum=tiny.sha256(archive))
        assert [written] == list((tmp_path / "cache").iterdir())
        return name

    return prepare


def parts(data) -> dict:
    return {key: getattr(data, key) for key in ("private", "validation", "public", "test")}


@pytest.mark.parametrize("name", DATASETS)
def test_contract(name, name_of, few_embedded, tmp_path):
    assert DATASETS[name].about == DATASETS[name].__doc__ != type(DATASETS[name]).__doc__
    data = load_data(name_of(name), root=tmp_path / "cache", seed=3)
    assert data.classes == len(data.class_names) >= 2
    seen = set()
    for key, images in parts(data).items():
        assert images.x.dtype == torch.uint8 and images.y.dtype == torch.int64
        assert images.shape == data.shape and data.shape[0] in (1, 3)
        assert images.y.min() >= 0 and images.y.max() < data.classes
        assert data.draw["sizes"][key] == len(images) == len(images.x) > 0
        if name != "fashion":  # random pictures, so equal bytes mean the same picture
            content = {image.numpy().tobytes() for image in images.x}
            assert not content & seen
            seen |= content
    again = load_data(data.name, root=tmp_path / "cache", seed=3)
    other = load_data(data.name, root=tmp_path / "cache", seed=4)
    assert again.draw == data.draw and other.draw["sha256"] != data.draw["sha256"]
    for key, images in parts(data).items():
        assert torch.equal(images.x, parts(again)[key].x) and torch.equal(images.y, parts(again)[key].y)


def test_fashion_is_large_enough():
    data = load_data("fashion")
    assert len(data.private) >= 12_000 and len(data.public) >= 4_000 and len(data.test) == 2_000
    assert data.shape == (1, 28, 28) and data.class_names[9] == "Ankle boot"
    assert torch.bincount(data.private.y).tolist() == [1215, 1211, *[1215] * 8]
    assert data.draw["duplicates"] == 31 and data.draw["dropped"] == 5, "trousers that no one could tell apart"
    assert data.draw["sha256"] == "4541180813173d4b7397996c4f15376d2eab0016935041b21de5b8dc82945a4d", "the draw moved"


@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("cifar10", tiny.cifar10_python),
        ("cifar10", tiny.cifar10_binary),
        ("cifar100", tiny.cifar100_python),
        ("cifar100", tiny.cifar100_binary),
    ],
)
def test_cifar_arrays(name, build, tmp_path):
    archive = build(tmp_path / "archive")
    source = Source.read(get_data(name, root=tmp_path, source=archive, checksum=tiny.sha256(archive)))
    x, y, x_test, y_test = tiny.cifar_arrays(int(name.removeprefix("cifar")))
    assert np.array_equal(source.x_train, x) and source.y_train.tolist() == y
    assert np.array_equal(source.x_test, x_test) and source.y_test.tolist() == y_test
    assert source.class_names[7].replace(" ", "") in ("thing7", "fine7")


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_cifar_in_newer_pickle_protocols(protocol, tmp_path):
    archive = tiny.cifar10_python(tmp_path / "archive", protocol)
    source = Source.read(get_data("cifar10", root=tmp_path, source=archive, checksum=tiny.sha256(archive)))
    assert np.array_equal(source.x_train, tiny.cifar_arrays(10)[0])


@pytest.mark.parametrize("missing", ["test_batch", "batches.meta", "data_batch_1"])
def test_cifar_with_a_missing_member(missing, tmp_path):
    whole = {"test_batch": b"N.", "batches.meta": b"N.", "data_batch_1": b"N."}
    archive = tiny.write_tar(tmp_path / "archive", {key: value for key, value in whole.items() if key != missing})
    with pytest.raises(ValueError, match=r"no member|no dictionary"):
        get_data("cifar10", root=tmp_path / "cache", source=archive, checksum=tiny.sha256(archive))
    assert not (tmp_path / "cache").exists()


def test_cifar_binary_of_a_wrong_length(tmp_path):
    archive = tiny.write_tar(tmp_path / "archive", {"data_batch_1.bin": b"123", "test_batch.bin": b""})
    with pytest.raises(ValueError, match="no multiple of 3073"):
        get_data("cifar10", root=tmp_path, source=archive, checksum=tiny.sha256(archive))


def test_tinyimagenet_labels_and_names(name_of, tmp_path):
    data = load_data(name_of("tinyimagenet"), root=tmp_path / "cache")
    assert data.class_names == ("goldfish", "n02") and data.test.y.tolist() == [0, 1] and data.shape == (3, 64, 64)
    source = Source.read(tmp_path / "cache" / "tinyimagenet.npz")
    grey = (source.x_train == source.x_train[..., :1]).all(axis=(1, 2, 3))
    assert grey.sum() == 2, "grey pictures must have been kept, as three equal channels"


def test_orl_pixels_and_order(name_of, tmp_path):
    name_of("orl")
    source = Source.read(tmp_path / "cache" / "orl.npz")
    assert source.y_train[:6].tolist() == [0, 1, 2] * 2 and source.class_names == ("s0", "s1", "s2")
    assert np.array_equal(source.x_train[4], tiny.pictures(30, 112, 92, 1)[11])


def test_not_in_the_cache(tmp_path):
    with pytest.raises(ValueError, match="type: attcem data get cifar10"):
        load_data("cifar10", root=tmp_path)


def test_unknown_name():
    with pytest.raises(ValueError, match="did you mean 'cifar100'"):
        load_data("cifar-100")
    with pytest.raises(ValueError, match="did you mean 'cifar100'"):
        get_data("cifar-100")


def test_a_path_alone_is_told_what_to_put_before_it(tmp_path):
    for path, kind in ((tmp_path / "mine.npz", "npz"), (tmp_path, "imagefolder")):
        with pytest.raises(ValueError, match=f"write {kind}:{path}"):
            load_data(str(path))


@pytest.mark.parametrize(("name", "message"), [("npz", "npz:PATH"), ("imagefolder:", "PATH"), ("orl:here", "no path")])
def test_paths_after_the_colon(name, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        load_data(name, root=tmp_path)


@pytest.mark.parametrize("name", GIVEN)
def test_nothing_to_get(name, tmp_path):
    with pytest.raises(ValueError, match="load_data"):
        get_data(name, root=tmp_path)


def test_getting_twice_keeps_the_file(name_of, tmp_path):
    name_of("orl")
    before = (tmp_path / "cache" / "orl.npz").stat().st_mtime_ns
    assert get_data("orl", root=tmp_path / "cache").stat().st_mtime_ns == before


def test_default_root(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTCEM_DATA", str(tmp_path))
    assert default_root() == tmp_path
    monkeypatch.delenv("ATTCEM_DATA")
    assert default_root() == Path.home() / ".cache" / "attcem"
