"""Pictures as the device's half takes them, from files that somebody else may have made."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from attcem.reading.arrays import PIXELS, blamed
from attcem.reading.plain import MEGABYTE, read_content

LARGEST = 64 * MEGABYTE
FORMATS = ["PNG", "JPEG"]  # some of Pillow's readers start other programs
MODES = {"1", "L", "LA", "P", "RGB", "RGBA"}


def read_picture(path: Path, shape: list[int], *, resize: bool = False) -> np.ndarray:
    """A PNG or JPEG file as float32 in [0, 1], channels first; `resize` cuts out its middle and scales it to fit."""
    channels, height, width = shape
    content = read_content(path, LARGEST)
    with (
        blamed(path, "cannot be read as a picture ({}): give a PNG or JPEG file"),
        Image.open(io.BytesIO(content), formats=FORMATS) as opened,
    ):
        if opened.width * opened.height > PIXELS:
            raise ValueError(f"{opened.width} × {opened.height} pixels are too many")
        if opened.mode not in MODES:
            raise ValueError(f"its mode is {opened.mode}")
        picture = ImageOps.exif_transpose(opened).convert("L" if channels == 1 else "RGB")
    if picture.size != (width, height):
        if not resize:
            raise ValueError(
                f"{path} has {picture.width} × {picture.height} pixels, the network takes {width} × {height}: "
                "scale it, or give --resize (in Python, resize=True)"
            )
        picture = ImageOps.fit(picture, (width, height), Image.Resampling.BILINEAR)
    pixels = np.asarray(picture, dtype=np.float32).reshape(height, width, channels)
    return pixels.transpose(2, 0, 1) / 255


def check_picture(picture: np.ndarray, shape: list[int]) -> np.ndarray:
    """An array as float32, if it is one picture in [0, 1] of this shape."""
    picture = np.asarray(picture)
    if list(picture.shape) != shape:
        raise ValueError(f"a picture has the shape {tuple(shape)}, channels first, not {picture.shape}")
    if picture.dtype.kind != "f" or not ((picture >= 0) & (picture <= 1)).all():
        raise ValueError("a picture is floats from 0 to 1: divide bytes by 255")
    return picture.astype(np.float32)
