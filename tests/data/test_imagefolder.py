"""A folder of pictures."""

import os

import numpy as np
import pytest
from PIL import Image

from attcem.data import load_data
from attcem.data.imagefolder import read
from tests.data import tiny_archives as tiny


def fill(folder, n=8, height=30, width=40, channels=3, seed=0):
    folder.mkdir(parents=True)
    for index, image in enumerate(tiny.pictures(n, height, width, channels, seed)):
        (folder / f"{index}.png").write_bytes(tiny.encode(image))


def test_classes_in_turn_and_pixels_kept(tmp_path):
    fill(tmp_path / "b", seed=1)
    fill(tmp_path / "a")
    (tmp_path / "a" / "notes.txt").write_text("no picture")
    (tmp_path / ".cache").mkdir()
    source = read(tmp_path)
    assert source.class_names == ("a", "b") and source.y_train.tolist() == [0, 1] * 8 and source.x_test is None
    assert np.array_equal(source.x_train[::2], tiny.pictures(8, 30, 40, 3))


@pytest.mark.parametrize("held_out", ["test", "val"])
def test_train_and_test_folders(held_out, tmp_path):
    for seed, name in enumerate(("cat", "dog")):
        fill(tmp_path / "train" / name, seed=seed)
        fill(tmp_path / held_out / name, n=2, seed=seed + 9)
    data = load_data(f"imagefolder:{tmp_path}")
    assert len(data.test) == 4 and data.test.y.tolist() == [0, 1, 0, 1] and data.class_names == ("cat", "dog")
    assert np.array_equal(data.test.x[0].numpy(), tiny.pictures(2, 30, 40, 3, seed=9)[0])


def test_the_most_common_size_and_mode(tmp_path):
    fill(tmp_path / "a", n=5, channels=1)
    fill(tmp_path / "b", n=2, height=60, width=50)
    Image.new("P", (33, 33)).save(tmp_path / "b" / "palette.gif")
    assert read(tmp_path).x_train.shape == (8, 30, 40, 1)


def test_sixteen_bit_grey_keeps_its_range(tmp_path):
    for name, value in (("a", 65535), ("b", 256 * 7)):
        (tmp_path / name).mkdir()
        Image.fromarray(np.full((30, 30), value, np.uint16)).save(tmp_path / name / "1.png")
    assert read(tmp_path).x_train[:, 0, 0, 0].tolist() == [255, 7]


def test_small_pictures(tmp_path):
    fill(tmp_path / "a", height=20)
    fill(tmp_path / "b", height=20)
    with pytest.raises(ValueError, match=r"20x40 pixels.*28x28"):
        read(tmp_path)


@pytest.mark.parametrize("content", [b"", b"not a picture", tiny.encode(tiny.pictures(1, 30, 40, 3)[0])[:-2000]])
def test_unreadable_picture_is_named(content, tmp_path):
    fill(tmp_path / "a")
    fill(tmp_path / "b")
    (tmp_path / "b" / "broken.png").write_bytes(content)
    with pytest.raises(ValueError, match=r"broken\.png cannot be read"):
        read(tmp_path)


@pytest.mark.parametrize("form", ["EPS", "PCX", "ICNS"])
def test_only_plain_formats_are_opened(form, tmp_path):
    fill(tmp_path / "a", width=30)
    with (tmp_path / "a" / "other.png").open("wb") as file:
        Image.new("RGB", (32, 32)).save(file, form)
    with pytest.raises(ValueError, match=r"other\.png cannot be read"):
        read(tmp_path)


@pytest.mark.parametrize("link", ["own/b", "own/a/link.png", "own/train"])
def test_links_that_leave_the_folder(link, tmp_path):
    fill(tmp_path / "own" / "a")
    fill(tmp_path / "elsewhere" / "x")
    (tmp_path / link).symlink_to(tmp_path / ("elsewhere/x/0.png" if link.endswith("png") else "elsewhere"))
    with pytest.raises(ValueError, match="link that leaves"):
        read(tmp_path / "own")


def test_a_pipe_is_named_and_never_opened(tmp_path):
    fill(tmp_path / "a")
    fill(tmp_path / "b")
    os.mkfifo(tmp_path / "b" / "pipe.png")
    with pytest.raises(ValueError, match=r"pipe\.png is no regular file"):
        read(tmp_path)


@pytest.mark.parametrize("target", ["self.png", "missing.png"])
def test_links_to_nowhere_are_named(target, tmp_path):
    fill(tmp_path / "a")
    fill(tmp_path / "b")
    (tmp_path / "b" / "self.png").symlink_to(target)
    with pytest.raises(ValueError, match=r"self\.png is a link to itself or to nothing"):
        read(tmp_path)


def test_a_class_folder_that_links_to_itself_is_no_class(tmp_path):
    fill(tmp_path / "a")
    fill(tmp_path / "b")
    (tmp_path / "c").symlink_to("c")
    assert read(tmp_path).class_names == ("a", "b")


def test_links_inside_the_folder_are_fine(tmp_path):
    fill(tmp_path / "own" / "a")
    fill(tmp_path / "own" / "b", n=2)
    (tmp_path / "own" / "b" / "link.png").symlink_to(tmp_path / "own" / "a" / "0.png")
    (tmp_path / "alias").symlink_to(tmp_path / "own")
    assert len(read(tmp_path / "alias").x_train) == 11


@pytest.mark.parametrize(
    ("folders", "message"),
    [
        ([], "no class folders"),
        (["a"], "fewer than 2 classes"),
        (["train/a", "train/b", "test/c"], "class 'c' has test pictures"),
    ],
)
def test_folders_that_make_no_data_set(folders, message, tmp_path):
    for folder in folders:
        fill(tmp_path / folder)
    with pytest.raises(ValueError, match=message):
        read(tmp_path)


def test_empty_class_and_missing_folder(tmp_path):
    fill(tmp_path / "a")
    (tmp_path / "b").mkdir()
    with pytest.raises(ValueError, match="has no pictures"):
        read(tmp_path)
    with pytest.raises(ValueError, match="is not a folder"):
        read(tmp_path / "c")
