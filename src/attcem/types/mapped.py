"""Pictures in memory, or, above a limit, in a temporary file on disk, read as needed."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from attcem.files import default_root

MEMORY = 2 << 30  # bytes of pictures that are held in memory unless told otherwise
BLOCK = 4 << 20  # bytes that are read or copied at a time


def blank(shape: tuple[int, ...], memory: int = MEMORY) -> UInt8[np.ndarray, "..."]:
    """An array to fill: in memory if it fits there, else in a file, which is gone once nobody uses the array."""
    size = int(np.prod(shape))
    if size <= memory:
        return np.empty(shape, dtype=np.uint8)
    check_disk(size)
    return np.memmap(nameless_file(), dtype=np.uint8, mode="w+", shape=shape)


@dataclass(frozen=True)
class Chosen:
    """Some rows of several arrays, counted as if these were one; they are read when a slice of them is asked for."""

    arrays: Sequence[UInt8[np.ndarray, "_ ..."]]
    index: Int64[np.ndarray, " n"]

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: slice) -> UInt8[np.ndarray, "m ..."]:
        places, start = self.index[rows], 0
        found = np.empty((len(places), *self.arrays[0].shape[1:]), dtype=np.uint8)
        for array in self.arrays:
            here = (places >= start) & (places < start + len(array))
            found[here] = array[places[here] - start]
            start += len(array)
        return found

    def copy(self, memory: int) -> UInt8[np.ndarray, "n ..."]:
        copied = blank((len(self), *self.arrays[0].shape[1:]), memory)
        for rows in blocks(copied):
            copied[rows] = self[rows]
        return copied


def pick(x: UInt8[Tensor, "n ..."], index: slice | Tensor, memory: int) -> UInt8[Tensor, "m ..."]:
    """x[index]; what is picked from more than fits in memory may not fit there either."""
    if isinstance(index, slice) or x.device.type != "cpu" or x.nbytes <= memory:
        return x[index]
    places = torch.arange(len(x))[index.cpu()].numpy()
    return torch.from_numpy(Chosen([x.numpy()], places).copy(memory))


def blocks(x: np.ndarray | Tensor | Chosen) -> Iterator[slice]:
    """Slices that cut an array into pieces of a few megabytes, however large one picture is."""
    rows = max(1, BLOCK // max(1, x[:1].nbytes))
    return (slice(start, start + rows) for start in range(0, len(x), rows))


class Pile:
    """Pictures of one shape that arrive in turn: once they exceed the memory, they are written to a file."""

    def __init__(self, memory: int) -> None:
        self.memory, self.count, self.held = memory, 0, 0
        self.waiting: list[np.ndarray] = []
        self.file: IO[bytes] | None = None
        self.shape: tuple[int, ...] = ()  # of one picture, once there is one

    def add(self, pictures: UInt8[np.ndarray, "_ ..."]) -> None:
        self.shape = pictures.shape[1:]
        self.waiting.append(pictures)
        self.count, self.held = self.count + len(pictures), self.held + pictures.nbytes
        if self.held > self.memory:
            self.file = self.file or nameless_file()
            self.write(self.file)

    def write(self, file: IO[bytes]) -> None:
        check_disk(self.held)
        for pictures in self.waiting:
            file.write(np.ascontiguousarray(pictures).data)
        file.flush()
        self.waiting, self.held = [], 0

    def array(self) -> UInt8[np.ndarray, "n ..."]:
        if self.file is None:
            return np.concatenate(self.waiting)
        self.write(self.file)
        return np.memmap(self.file, dtype=np.uint8, mode="r+", shape=(self.count, *self.shape))


def nameless_file() -> IO[bytes]:
    return tempfile.TemporaryFile(dir=folder())


def folder() -> Path:
    """Beside the data sets, as /tmp is itself memory on some systems; if nothing can be written there, /tmp."""
    with suppress(OSError):
        default_root().mkdir(parents=True, exist_ok=True)
    return default_root() if os.access(default_root(), os.W_OK) else Path(tempfile.gettempdir())


def check_disk(size: int) -> None:
    """Raise where a file of so many bytes does not fit: to run out of disk while writing to an array is fatal."""
    free = shutil.disk_usage(folder()).free
    if size > free:
        raise ValueError(
            f"{size >> 20:,} MB of pictures do not fit in {folder()}, where {free >> 20:,} MB are free: set "
            "ATTCEM_DATA to a folder on a larger disk, give fewer or smaller pictures, or raise memory="
        )
