"""Pictures that do not fit in memory lie in a file, and are the same pictures."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import attcem
from attcem.config import ClientsConfig
from attcem.data.clients import deal_clients
from attcem.types import Images, mapped
from attcem.types.mapped import Chosen, Pile, blank

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux where an array lies, and for less memory")

LITTLE = 10_000
PARTS = ("private", "validation", "public", "test")
LABELS = np.arange(60) % 3


@pytest.fixture(scope="module")
def pictures() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (60, 28, 28, 3)).astype(np.uint8)


def in_file(x: torch.Tensor) -> bool:
    """Whether a file stands behind a tensor, as the system says."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(place, 16) for place in line.split()[0].split("-"))
        if start <= x.data_ptr() < end:
            return line.split()[4] != "0"
    raise AssertionError("no such memory")


def same(found: attcem.data.Data, expected: attcem.data.Data) -> bool:
    pairs = [(getattr(found, part), getattr(expected, part)) for part in PARTS]
    return all(torch.equal(a.x, b.x) and torch.equal(a.y, b.y) for a, b in pairs)


def on_disk(x: np.ndarray, folder: Path) -> np.memmap:
    np.save(folder / "x.npy", x)
    return np.load(folder / "x.npy", mmap_mode="r")


FORMS = {
    "uint8": lambda x, folder: (x, LABELS),
    "floats, channels first": lambda x, folder: (x.transpose(0, 3, 1, 2).astype(np.float32) / 255, LABELS),
    "a read-only file": lambda x, folder: (on_disk(x, folder), LABELS),
    "a file, channels first": lambda x, folder: (on_disk(x.transpose(0, 3, 1, 2), folder), LABELS),
    "pairs": lambda x, folder: list(zip(map(Image.fromarray, x), LABELS.tolist(), strict=True)),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_exceeds_the_memory_lies_in_a_file_and_is_the_same(form, pictures, tmp_path):
    found = attcem.make_data(FORMS[form](pictures, tmp_path), memory=LITTLE)
    assert same(found, attcem.make_data((pictures, LABELS)))
    for part in PARTS:
        assert in_file(getattr(found, part).x), part
    assert not in_file(attcem.make_data((pictures, LABELS)).private.x)


def test_npz_and_folders_likewise(pictures, tmp_path):
    np.savez_compressed(tmp_path / "own.npz", x_train=pictures, y_train=LABELS)
    for number, (picture, label) in enumerate(zip(pictures, LABELS, strict=True)):
        (tmp_path / "folder" / str(label)).mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(tmp_path / "folder" / str(label) / f"{number:02}.png")
    for name in (f"npz:{tmp_path / 'own.npz'}", f"imagefolder:{tmp_path / 'folder'}"):
        found = attcem.load_data(name, memory=LITTLE)
        assert same(found, attcem.load_data(name))
        assert in_file(found.private.x)


def test_grey_pictures_before_coloured_ones_in_a_file(pictures):
    items = [(x, int(y)) for x, y in zip([*pictures[:50, ..., 0], *pictures[50:]], LABELS, strict=True)]
    assert same(attcem.make_data(items, memory=LITTLE), attcem.make_data(items))


def test_a_selection_is_the_same_in_memory_and_in_a_file(pictures):
    images = Images(torch.from_numpy(pictures), torch.from_numpy(LABELS), memory=LITTLE)
    order = torch.randperm(60)
    for index in (order, order[:3], images.y == 1, slice(5, 50)):
        assert torch.equal(images[index].x, images.x[index])
        assert torch.equal(images[index].y, images.y[index])
    assert in_file(images[order].x)
    assert not in_file(images[order[:3]].x)
    assert images[order].memory == LITTLE


def test_pieces_of_what_does_not_fit_do_not_fill_memory_either(pictures):
    memory = pictures.nbytes // 2
    data = attcem.make_data((pictures, LABELS), memory=memory, validation=0.02, public=0.02, test=0.02)
    images = data.private.divide(torch.arange(len(data.private)).split(5))
    assert all(in_file(piece.x) and piece.x.nbytes < memory for piece in images)
    assert all(in_file(part.x) for part in deal_clients(data, ClientsConfig(count=3)))


def test_the_mean_image_is_exact_block_by_block(pictures, monkeypatch):
    monkeypatch.setattr(mapped, "BLOCK", 7 * pictures[0].nbytes)
    images = Images(torch.from_numpy(pictures), torch.from_numpy(LABELS))
    assert torch.allclose(images.mean(), images.pixels().mean(0), atol=1e-6)
    assert torch.equal(Images(images.x[:1], images.y[:1]).mean(), images[:1].pixels()[0])


def test_rows_of_several_arrays_count_as_those_of_one(pictures, monkeypatch):
    monkeypatch.setattr(mapped, "BLOCK", 7 * pictures[0].nbytes)
    index = np.random.default_rng(0).permutation(60)[:40]
    parts = [pictures[:10], pictures[10:11], pictures[11:]]
    assert (Chosen(parts, index).copy(LITTLE) == pictures[index]).all()


def test_a_pile_keeps_the_order_and_the_file_has_no_name(pictures, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTCEM_DATA", str(tmp_path / "new"))
    pile = Pile(memory=3 * pictures[0].nbytes)
    for picture in pictures:
        pile.add(picture[None])
    assert (pile.array() == pictures).all()
    assert (tmp_path / "new").is_dir()
    assert not list((tmp_path / "new").iterdir())


def test_a_disk_that_is_too_small_is_told_before_anything_is_written():
    with pytest.raises(ValueError, match="set ATTCEM_DATA to a folder on a larger disk"):
        blank((1 << 30, 1 << 20))


@pytest.mark.slow
def test_more_pictures_than_memory_are_read_trained_on_and_evaluated(tmp_path):
    kept = {"ATTCEM_DATA": str(tmp_path), "OMP_NUM_THREADS": "1"}
    freed = {"MALLOC_MMAP_THRESHOLD_": "1000000", "MALLOC_ARENA_MAX": "1"}  # what is given back counts no longer
    command = [sys.executable, "-m", "tests.data.large"]
    done = subprocess.run(command, env=os.environ | kept | freed, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
