"""Decode picture files into uint8 arrays; an unreadable one is an error that names it."""

import io
import struct
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np
from PIL import Image, UnidentifiedImageError

from attcem.progress import bar
from attcem.types.mapped import MEMORY, blank

# The plain raster formats only: some of Pillow's readers start other programs.
FORMATS = ("PNG", "JPEG", "PPM", "BMP", "WEBP", "TIFF", "GIF")
EXTENSIONS = (".png", ".jpg", ".jpeg", ".pgm", ".ppm", ".pnm", ".bmp", ".webp", ".tif", ".tiff", ".gif")
GREY_MODES = ("1", "L", "LA", "I", "I;16", "F")
UNREADABLE = (OSError, SyntaxError, ValueError, EOFError, struct.error, UnidentifiedImageError)

Picture = tuple[str, bytes | Path]  # a name for messages, and the file or its content
Labelled = list[tuple[str, Picture]]  # class and picture


def is_picture(name: str) -> bool:
    """Whether a file's name says that it holds a picture; names that start with a dot are a system's own."""
    path = PurePosixPath(name)
    return path.suffix.lower() in EXTENSIONS and not path.name.startswith(".")


def open_picture(picture: Picture, *, load: bool = True) -> Image.Image:
    """The decoded picture, or only its size and mode when `load` is false."""
    name, content = picture
    try:
        image = Image.open(io.BytesIO(content) if isinstance(content, bytes) else content, formats=FORMATS)
        if load:
            image.load()
    except (*UNREADABLE, Image.DecompressionBombError) as error:
        raise ValueError(f"{name} cannot be read as a picture ({error}): replace or remove it") from error
    return image


def to_array(image: Image.Image, *, size: tuple[int, int], grey: bool) -> np.ndarray:
    """Height × width × channels, converted and resized (size is width, height) where it differs."""
    if image.mode.startswith("I"):  # 16-bit grey: convert("L") would clip, not scale
        image = Image.fromarray((np.asarray(image).clip(0, 65535) // 256).astype(np.uint8))
    image = image.convert("L" if grey else "RGB")
    image = image if image.size == size else image.resize(size, Image.Resampling.LANCZOS)
    return np.asarray(image, dtype=np.uint8).reshape(size[1], size[0], -1)


def decode(
    labelled: Labelled,
    classes: Sequence[str],
    *,
    size: tuple[int, int],
    grey: bool,
    progress: bool,
    memory: int = MEMORY,
) -> tuple[np.ndarray, np.ndarray]:
    """All pictures as one NHWC array, above so many bytes of memory in a file, and the number of each one's class."""
    number = {name: place for place, name in enumerate(classes)}
    images = blank((len(labelled), size[1], size[0], 1 if grey else 3), memory)
    with bar("decoding pictures", len(labelled), shown=progress) as show:
        for index, (_, picture) in enumerate(labelled):
            with open_picture(picture) as image:
                images[index] = to_array(image, size=size, grey=grey)
            show(index + 1)
    return images, np.array([number[name] for name, _ in labelled])
