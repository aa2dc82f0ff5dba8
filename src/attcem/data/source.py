"""A data set as it was published: plain arrays, checked once, kept in one .npz file."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.lib.npyio import NpzFile

from attcem.files import replacing
from attcem.reading.arrays import HEADERS
from attcem.types.mapped import MEMORY, blank, blocks

SMALLEST = 28
REQUIRED = ("x_train", "y_train")
OPTIONAL = ("x_test", "y_test", "group")
UNREADABLE = (OSError, EOFError, zipfile.BadZipFile, zlib.error, ValueError)


@dataclass(frozen=True)
class Source:
    """Training images with labels; perhaps an official test set; perhaps groups that must stay together."""

    x_train: np.ndarray  # uint8, NHWC (NHW is taken as one channel)
    y_train: np.ndarray
    x_test: np.ndarray | None = None
    y_test: np.ndarray | None = None
    group: np.ndarray | None = None  # one id per training image, or per training image and then per test image
    class_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.x_test is None) != (self.y_test is None):
            raise ValueError("x_test and y_test come together: give both, or neither to have a test set drawn")
        put = object.__setattr__  # the one moment at which a frozen value may still be tidied
        for x_name, y_name in (("x_train", "y_train"), ("x_test", "y_test")):
            if getattr(self, x_name) is not None:
                put(self, x_name, _images(getattr(self, x_name), x_name))
                put(self, y_name, _labels(getattr(self, y_name), y_name, len(getattr(self, x_name)), x_name))
        if self.x_test is not None and self.x_test.shape[1:] != self.x_train.shape[1:]:
            shapes = f"{self.x_test.shape[1:]} and x_train {self.x_train.shape[1:]}"
            raise ValueError(f"x_test has images of {shapes}: resize one of them so that they agree")
        if self.x_train[:256].max() == 1:
            advice = "give 255 * x, or floats in [0, 1]"
            raise ValueError(f"pixels have only the values 0 and 1, which is nearly black: {advice}")
        if not self.class_names:  # labels 5, 7 and 9 are three classes
            found = np.unique(self.labels)
            put(self, "class_names", tuple(map(str, found)))
            for y_name in ("y_train", "y_test")[: 1 + (self.y_test is not None)]:
                put(self, y_name, np.searchsorted(found, getattr(self, y_name)))
        if len(np.unique(self.labels)) < 2:
            raise ValueError("there are fewer than 2 classes: give images of at least 2 different labels")
        if (most := self.labels.max()) >= len(self.class_names):
            raise ValueError(f"label {most} has no name: class_names has {len(self.class_names)}, give one per class")
        if self.group is not None:
            _check_groups(self.group, len(self.y_train), len(self.labels))

    @property
    def labels(self) -> np.ndarray:
        return self.y_train if self.y_test is None else np.concatenate([self.y_train, self.y_test])

    @classmethod
    def read(cls, path: Path, memory: int = MEMORY) -> Source:
        """Read a .npz file, never unpickling; a ValueError says what is wrong with it."""
        if not path.is_file():
            raise ValueError(
                f"{path} is not a file: give a .npz with {', '.join(REQUIRED)} and, if you like, {', '.join(OPTIONAL)}"
            )
        try:
            with path.open("rb") as file:
                start = file.read(2)
            if start != b"PK":
                raise ValueError("it is no zip archive: write it with np.savez(path, x_train=..., y_train=..., ...)")
            with np.load(path, allow_pickle=False) as stored:
                wanted = [key for key in (*REQUIRED, *OPTIONAL, "class_names") if key in stored.files]
                arrays = {key: _stored(stored, key, memory) for key in wanted}
        except MemoryError as error:
            advice = "close other programs, or save fewer or smaller pictures"
            raise ValueError(f"memory ran out while reading {path} ({error}): {advice}") from error
        except UNREADABLE as error:
            raise ValueError(f"{path} cannot be read as .npz ({error}): save plain arrays with np.savez") from error
        if missing := [key for key in REQUIRED if key not in arrays]:
            advice = "save it with np.savez(path, x_train=..., y_train=...)"
            raise ValueError(f"{path} has no {' and no '.join(missing)}: {advice}")
        names = tuple(str(name) for name in np.atleast_1d(arrays.pop("class_names", np.array([], dtype=str))))
        try:
            return cls(**arrays, class_names=names)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def write(self, path: Path) -> Path:
        arrays = {key: getattr(self, key) for key in (*REQUIRED, *OPTIONAL) if getattr(self, key) is not None}
        with replacing(path) as file:
            np.savez(file, class_names=np.array(self.class_names, dtype=str), **arrays)
        return path


def _stored(stored: NpzFile, key: str, memory: int) -> np.ndarray:
    """An array of the file; pictures that do not fit in memory are unpacked block by block."""
    assert stored.zip is not None, "it is open"
    with stored.zip.open(f"{key}.npy") as file:
        read_header = HEADERS.get(np.lib.format.read_magic(file))
        if read_header is not None:
            shape, columns_first, dtype = read_header(file)
            if dtype == np.uint8 and not columns_first and np.prod(shape) > memory:
                x = blank(shape, memory)
                for rows in blocks(x):
                    x[rows] = np.frombuffer(file.read(x[rows].nbytes), np.uint8).reshape(x[rows].shape)
                return x
    return stored[key]


def _images(x: np.ndarray, name: str) -> np.ndarray:
    if x.dtype != np.uint8:
        raise ValueError(f"{name} has dtype {x.dtype}: images are uint8 from 0 to 255, e.g. (255 * x).astype(np.uint8)")
    x = x[..., None] if x.ndim == 3 else x
    if x.ndim != 4 or len(x) == 0:
        raise ValueError(f"{name} has shape {x.shape}: give (n, height, width) or (n, height, width, channels), n > 0")
    _, height, width, channels = x.shape
    if channels not in (1, 3):
        raise ValueError(f"{name} has {channels} channels, the last axis of {x.shape}: give 1 or 3, channels last")
    if min(height, width) < SMALLEST:
        raise ValueError(f"{name} has images of {height}x{width} pixels: resize to at least {SMALLEST}x{SMALLEST}")
    return np.ascontiguousarray(x)


def _labels(y: np.ndarray, name: str, length: int, of: str) -> np.ndarray:
    if y.dtype.kind not in "iu" or y.ndim != 1:
        raise ValueError(f"{name} is {y.dtype} of shape {y.shape}: give one integer label per image, 0 to classes - 1")
    if len(y) != length:
        raise ValueError(f"{name} has {len(y)} labels for the {length} images of {of}: give one label per image")
    if y.min() < 0:
        raise ValueError(f"{name} has the negative label {y.min()}: number the classes from 0")
    if y.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} has the label {y.max()}: number the classes from 0 without gaps")
    return y.astype(np.int64)


def _check_groups(group: np.ndarray, training: int, total: int) -> None:
    if group.dtype.kind not in "iuU" or group.ndim != 1:
        raise ValueError(f"group is {group.dtype} of shape {group.shape}: give one integer or text per image")
    if len(group) not in (training, total):
        raise ValueError(f"group has {len(group)} ids: give {training} (training) or {total} (training, then test)")
