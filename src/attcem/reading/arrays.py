"""Arrays of an .npz, a safetensors file or a PNG: inert, whole, and no larger in memory than is allowed."""

import io
import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from PIL import Image
from safetensors.torch import load
from torch import Tensor

from attcem.reading.plain import MEGABYTE, one_line, open_plain, read_content

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
PNG_LIMIT = 64 * MEGABYTE
PIXELS = 64 * MEGABYTE  # a strip of 256 pictures of ImageNet's size has 13 million
MODES = ("L", "RGB", "RGBA", "P")


@contextmanager
def blamed(path: Path, why: str) -> Iterator[None]:
    """Damage shows in whatever part of zipfile, zlib, ast, numpy, safetensors or Pillow it reaches: a ValueError."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        raise ValueError(f"{path} {why.format(one_line(error))}") from None


def read_arrays(path: Path, limit: int) -> dict[str, np.ndarray]:
    """Every array in the file by name; pickled objects, and content beyond the limit, are refused."""
    with open_plain(path) as file, blamed(path, "is damaged ({})"), zipfile.ZipFile(file) as archive:
        if sum(member.file_size for member in archive.infolist()) > limit:
            raise ValueError(f"unpacked it is larger than {limit / MEGABYTE:g} MB")
        return {name.removesuffix(".npy"): _array(archive, name) for name in archive.namelist()}


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """One member: no more is unpacked than it declares, and its header must account for every byte."""
    with archive.open(name) as member:
        file = io.BytesIO(member.read(archive.getinfo(name).file_size))
    shape, by_column, dtype = HEADERS[npy.read_magic(file)](file)
    content = bytearray(file.read())
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(content):
        raise ValueError(f"{name} is no plain array of the shape that it declares")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if by_column else "C")


def tensors_of(content: bytes, path: Path) -> dict[str, Tensor]:
    with blamed(path, "holds no tensors ({})"):
        return load(content)


def read_png(path: Path) -> tuple[bytes, np.ndarray]:
    """The content of a file that is a whole PNG, and its pixels, height × width × channels: one channel, or three.

    A PNG and nothing else, for some of Pillow's readers start other programs.
    """
    content = read_content(path, PNG_LIMIT)
    with (
        blamed(path, "cannot be read as a PNG ({}): restore or remove it"),
        Image.open(io.BytesIO(content), formats=["PNG"]) as picture,
    ):
        if picture.width * picture.height > PIXELS:
            raise ValueError(f"{picture.width} × {picture.height} pixels are too many")
        if picture.mode not in MODES:
            raise ValueError(f"its mode is {picture.mode}")
        pixels = np.asarray(picture if picture.mode == "L" else picture.convert("RGB"))
    return content, pixels.reshape(*pixels.shape[:2], -1)
