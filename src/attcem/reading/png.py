"""Pictures of a run: PNG and nothing else, for some of Pillow's readers start other programs."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image

from attcem.reading.content import MEGABYTE, read_content

LIMIT = 64 * MEGABYTE
PIXELS = 64 * MEGABYTE
"""A strip of 256 pictures of ImageNet's size has 13 million."""
MODES = ("L", "RGB", "RGBA", "P")


def read_png(path: Path) -> bytes:
    """The content of a file that is a whole PNG."""
    content = read_content(path, LIMIT)
    pixels_of(content, path)
    return content


def read_pixels(path: Path) -> np.ndarray:
    """The pixels of a PNG, height × width × channels: one channel, or three."""
    return pixels_of(read_content(path, LIMIT), path)


def pixels_of(content: bytes, path: Path) -> np.ndarray:
    """The same from the file's content; the path is for the error."""
    try:
        with Image.open(io.BytesIO(content), formats=["PNG"]) as picture:
            if picture.width * picture.height > PIXELS:
                raise ValueError(f"{picture.width} × {picture.height} pixels are too many")
            if picture.mode not in MODES:
                raise ValueError(f"its mode is {picture.mode}")
            pixels = np.asarray(picture if picture.mode == "L" else picture.convert("RGB"))
    except MemoryError:
        raise
    except Exception as error:  # Pillow raises what its plugin happens to meet: OSError, SyntaxError, struct.error ...
        raise ValueError(f"{path} cannot be read as a PNG ({error}): restore or remove it") from None
    return pixels.reshape(*pixels.shape[:2], -1)
