"""What a .npz must hold, and what is said when it does not."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from attcem.data import load_data
from attcem.data.source import Source


def arrays(**changes) -> dict:
    good = {
        "x_train": np.zeros((40, 28, 28, 3), np.uint8),
        "y_train": np.arange(40) % 4,
        "x_test": np.zeros((8, 28, 28, 3), np.uint8),
        "y_test": np.arange(8) % 4,
    }
    return {key: value for key, value in (good | changes).items() if value is not None}


BAD = {
    "no x_train": ({"x_train": None}, "no x_train"),
    "no labels": ({"y_train": None}, "no y_train"),
    "half a test set": ({"y_test": None}, "x_test and y_test come together"),
    "floats": ({"x_train": np.zeros((40, 28, 28, 3))}, r"float64.*uint8"),
    "flat": ({"x_train": np.zeros((40, 784), np.uint8)}, r"shape \(40, 784\)"),
    "empty": ({"x_train": np.zeros((0, 28, 28), np.uint8)}, "n > 0"),
    "channels first": ({"x_train": np.zeros((40, 3, 28, 28), np.uint8)}, "28 channels"),
    "small": ({"x_train": np.zeros((40, 28, 27, 3), np.uint8)}, "28x27 pixels"),
    "shapes differ": ({"x_test": np.zeros((8, 32, 32, 3), np.uint8)}, "resize one"),
    "fewer labels": ({"y_train": np.arange(39) % 4}, "39 labels for the 40 images"),
    "float labels": ({"y_train": np.arange(40) % 4 / 1}, "integer label"),
    "one-hot labels": ({"y_test": np.eye(8, dtype=int)}, "integer label"),
    "negative labels": ({"y_test": np.arange(8) - 4}, "negative label -4"),
    "one class": ({"y_train": np.zeros(40, int), "y_test": np.zeros(8, int)}, "fewer than 2 classes"),
    "zeros and ones": ({"x_train": np.tile(np.eye(28, dtype=np.uint8)[..., None], (40, 1, 1, 3))}, "nearly black"),
    "too large a label": ({"y_train": np.full(40, 2**64 - 1, np.uint64)}, "without gaps"),
    "names too few": ({"class_names": np.array(["a", "b"])}, "label 3 has no name"),
    "group too short": ({"group": np.arange(39)}, r"39 ids: give 40 .* or 48"),
    "float group": ({"group": np.arange(40) / 1}, "integer or text"),
    "pickled": ({"y_train": np.array([object()] * 40)}, "plain arrays"),
}


def test_labels_with_gaps_are_as_many_classes_as_there_are(tmp_path):
    labels = np.array([5, 7, 9, 11])
    x = np.random.default_rng(0).integers(0, 256, (88, 28, 28, 1), dtype=np.uint8)
    y = labels[np.arange(88) % 4]
    np.savez(tmp_path / "own.npz", x_train=x[:80], y_train=y[:80], x_test=x[80:], y_test=y[80:])
    data = load_data(f"npz:{tmp_path / 'own.npz'}")
    assert data.class_names == ("5", "7", "9", "11") and sorted(data.private.y.unique().tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("case", BAD)
def test_bad_arrays(case, tmp_path):
    changes, message = BAD[case]
    np.savez(tmp_path / "own.npz", **arrays(**changes))
    with pytest.raises(ValueError, match=message) as error:
        load_data(f"npz:{tmp_path / 'own.npz'}")
    assert "own.npz" in str(error.value)


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 truncated", b"\x80\x04N."])
def test_not_an_npz(content, tmp_path):
    (tmp_path / "own.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"cannot be read as \.npz"):
        load_data(f"npz:{tmp_path / 'own.npz'}")


def test_no_such_file(tmp_path):
    with pytest.raises(ValueError, match=r"is not a file: give a \.npz with x_train, y_train and, if you like, x_test"):
        load_data(f"npz:{tmp_path / 'none.npz'}")


def test_grey_images_without_a_channel_axis(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (40, 28, 30), np.uint8)
    np.savez(
        tmp_path / "own.npz", **arrays(x_train=images, x_test=images[:8], y_train=np.arange(40, dtype=np.uint8) % 4)
    )
    data = load_data(f"npz:{tmp_path / 'own.npz'}")
    assert data.shape == (1, 28, 30) and data.class_names == ("0", "1", "2", "3")
    assert np.array_equal(data.test.x.numpy()[..., 0], images[:8]), "an official test set keeps its order"


def test_text_groups_stay_together(tmp_path):
    person = np.array([f"person {index // 4}" for index in range(40)])
    images = np.repeat(np.arange(10, dtype=np.uint8), 4)[:, None, None] * np.ones((28, 28), np.uint8)
    changes = {"x_train": images, "y_train": np.arange(40) // 20, "x_test": None, "y_test": None, "group": person}
    np.savez(tmp_path / "own.npz", **arrays(**changes))
    data = load_data(f"npz:{tmp_path / 'own.npz'}")
    parts = [
        {int(image[0, 0, 0]) for image in part.x} for part in (data.private, data.validation, data.public, data.test)
    ]
    assert sum(map(len, parts)) == 10, "each of the ten people is in one part only"


def test_write_and_read_back(tmp_path):
    source = Source(**arrays(group=np.arange(48)), class_names=("Ä", "b", "c", "d", "e"))
    again = Source.read(source.write(tmp_path / "new" / "own.npz"))
    assert again.class_names == source.class_names and [file.name for file in (tmp_path / "new").iterdir()] == [
        "own.npz"
    ]
    for key in (*arrays(), "group"):
        assert np.array_equal(getattr(again, key), getattr(source, key))


def test_a_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = Source(**arrays()).write(tmp_path / "own.npz")
    before = path.read_bytes()

    def full_disk(file, **_):
        file.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr("attcem.data.source.np.savez", full_disk)
    with pytest.raises(OSError, match="no space"):
        Source(**arrays()).write(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


SHORT_OF_MEMORY = """
import resource, sys
from attcem.data import load_data
used = 1024 * next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize"))
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), -1))
load_data(f"npz:{sys.argv[1]}")
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the limit is set by Linux's own count")
def test_memory_that_runs_out_is_not_blamed_on_the_file(tmp_path):
    large = {"x_train": np.zeros((80_000, 50, 50), np.uint8), "y_train": np.arange(80_000) % 2}
    np.savez_compressed(tmp_path / "own.npz", **large)
    command = [sys.executable, "-c", SHORT_OF_MEMORY, str(tmp_path / "own.npz")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "ValueError: memory ran out while reading" in ended.stderr and "own.npz" in ended.stderr
    assert "fewer or smaller pictures" in ended.stderr
