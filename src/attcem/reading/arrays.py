"""Arrays from an .npz: inert, whole, and no larger in memory than is allowed."""

from __future__ import annotations

import io
import math
import zipfile
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from attcem.reading.content import MEGABYTE, open_plain

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_arrays(path: Path, limit: int) -> dict[str, np.ndarray]:
    """Every array in the file by name; pickled objects, and content beyond the limit, are refused."""
    with open_plain(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                if sum(member.file_size for member in archive.infolist()) > limit:
                    raise ValueError(f"unpacked it is larger than {limit / MEGABYTE:g} MB")
                return {name.removesuffix(".npy"): _array(archive, name) for name in archive.namelist()}
        except MemoryError:
            raise
        except Exception as error:  # damage shows in whatever part of zipfile, zlib, ast or numpy it reaches
            raise ValueError(f"{path} is damaged ({' '.join(str(error).split())[:200]})") from None


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """One member: no more is unpacked than it declares, and its header must account for every byte."""
    with archive.open(name) as member:
        file = io.BytesIO(member.read(archive.getinfo(name).file_size))
    shape, by_column, dtype = HEADERS[npy.read_magic(file)](file)
    content = bytearray(file.read())
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(content):
        raise ValueError(f"{name} is no plain array of the shape that it declares")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if by_column else "C")
