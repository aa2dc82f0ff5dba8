"""Pictures that a user holds, as uint8 arrays: arrays, a torch Dataset or DataLoader, a Hugging Face dataset."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from attcem.types.mapped import Pile, blocks

COLOURS = (1, 3)
ADVICE = "give (images, labels), a torch Dataset or DataLoader of such pairs, or a Hugging Face dataset"


class Pictures(NamedTuple):
    """Images, one label each, and the names that the labels count, where they are known."""

    x: np.ndarray  # uint8, NHWC
    y: np.ndarray
    names: tuple[str, ...] = ()


def collect(given: Any, part: str, memory: int) -> Pictures:
    """Read a collection of any of the forms in ADVICE; errors name the part that it is given for.

    Items are read one after another; what exceeds the memory goes to a file.
    """
    try:
        if isinstance(given, tuple | list) and len(given) == 2 and hasattr(given[0], "shape"):
            x, y = as_pixels(as_array(given[0]), memory), as_labels(given[1])
            if len(x) != len(y):
                raise ValueError(f"{len(y)} labels for the {len(x)} images: give one label per image")
            return Pictures(x, y)
        if hasattr(given, "features") and hasattr(given, "column_names"):
            return _read_columns(given, memory)
        if not hasattr(given, "__iter__") and not hasattr(given, "__getitem__"):
            raise ValueError(f"it is {type(given).__name__}: {ADVICE}")
        return _read_pairs(given, memory)
    except ValueError as error:
        raise ValueError(f"{part}: {error}") from None


def as_array(values: Any) -> np.ndarray:
    if isinstance(values, Image.Image):
        return np.asarray(values if values.mode == "L" else values.convert("RGB"))
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def as_pixels(x: np.ndarray, memory: int) -> np.ndarray:
    """Many pictures as NHWC uint8; anything that could be misread is refused."""
    x = x[..., None] if x.ndim == 3 else x
    if x.ndim != 4 or 0 in x.shape:
        raise ValueError(f"images have shape {x.shape}: give (n, height, width) or four axes, channels first or last")
    first, last = x.shape[1] in COLOURS, x.shape[3] in COLOURS
    if first == last:
        what = "both the second and the last axis could be" if first else "no axis is"
        raise ValueError(f"images have shape {x.shape}: {what} the 1 or 3 channels; give (n, height, width, channels)")
    x = x.transpose(0, 2, 3, 1) if first else x
    if x.dtype == np.uint8 and x.flags.c_contiguous:
        return x
    scale, pile = byte_scale(x), Pile(memory)
    for rows in blocks(x):
        pile.add(np.rint(x[rows] * scale).astype(np.uint8) if scale > 1 else np.ascontiguousarray(x[rows], np.uint8))
    return pile.array()


def byte_scale(x: np.ndarray) -> int:
    """What makes bytes of the pixels: 255 for floats, which must lie in [0, 1], and 1 for numbers from 0 to 255."""
    if x.dtype == np.uint8:
        return 1
    if x.dtype.kind not in "fiu":
        raise ValueError(f"images are {x.dtype}: give uint8 from 0 to 255, or floats in [0, 1]")
    low, high = x.min(), x.max()
    if not np.isfinite([low, high]).all():
        raise ValueError("images contain NaN or infinite values: remove or replace them")
    most = 1 if x.dtype.kind == "f" else 255
    if not (low >= 0 and high <= most):
        raise ValueError(
            f"{x.dtype} images have values from {low:g} to {high:g}, not 0 to {most}: leave out normalisation "
            "(it belongs into the network), and give floats in [0, 1] or uint8"
        )
    return 255 // most


def as_labels(y: Any) -> np.ndarray:
    labels = as_array(y)
    if labels.dtype.kind not in "iu" or labels.ndim != 1:
        raise ValueError(f"labels are {labels.dtype} of shape {labels.shape}: give one whole number for each image")
    return labels.astype(np.int64)


def _items(given: Any) -> Iterable[Any]:
    """Every item once; a Dataset need not stop iterating by itself, but knows its length."""
    if hasattr(given, "__len__") and hasattr(given, "__getitem__") and not isinstance(given, Sequence):
        return (given[index] for index in range(len(given)))
    return given


def _read_columns(given: Any, memory: int) -> Pictures:
    """The column of pictures and that of labels, told by what is in them."""
    if not len(given):
        raise ValueError("it is empty")
    first, features = given[0], given.features
    images = [name for name, value in first.items() if isinstance(value, Image.Image) or np.ndim(value) >= 2]
    labels = [name for name in first if getattr(features[name], "names", None)] or [
        name for name, value in first.items() if isinstance(value, int | np.integer)
    ]
    if len(images) != 1 or len(labels) != 1:
        raise ValueError(
            f"columns {', '.join(first)}: one must hold pictures and one class labels, found {images} and {labels}; "
            "keep two with select_columns"
        )
    image, label = images[0], labels[0]
    found = _read_pairs(((row[image], row[label]) for row in _items(given)), memory)
    return found._replace(names=tuple(getattr(features[label], "names", None) or ()))


def _read_pairs(given: Any, memory: int) -> Pictures:
    """Single pairs, or a loader's batches; grey pictures among coloured ones get three equal channels."""
    batched = hasattr(given, "dataset") and hasattr(given, "batch_size") and given.batch_size is not None
    pile, labels = Pile(memory), list[np.ndarray]()
    for item in _items(given):
        if not isinstance(item, tuple | list) or len(item) < 2:
            raise ValueError(f"an item is {type(item).__name__}, not a pair of image and label: {ADVICE}")
        x, y = as_array(item[0]), as_array(item[1])
        pixels = as_pixels(x if batched else x[None], memory)
        height, width, colours = pile.shape or pixels.shape[1:]
        if pixels.shape[1:3] != (height, width):
            one, other = f"{height}×{width}", "×".join(map(str, pixels.shape[1:3]))
            raise ValueError(f"images of {one} and of {other} pixels: resize all to one size")
        if pixels.shape[3] > colours:
            grey, pile = pile.array(), Pile(memory)
            for rows in blocks(grey):
                pile.add(np.repeat(grey[rows], pixels.shape[3], axis=3))
        pile.add(np.repeat(pixels, colours, axis=3) if pixels.shape[3] < colours else pixels)
        labels.append(as_labels(y if batched else np.atleast_1d(y)))
    if not labels:
        raise ValueError("it is empty")
    return Pictures(pile.array(), np.concatenate(labels))


def number_classes(parts: dict[str, Pictures], names: Sequence[str]) -> tuple[dict[str, Pictures], tuple[str, ...]]:
    """The parts and the names of their classes; without names, classes are numbered anew: 5, 7, 9 are three."""
    known = tuple(names) or next((part.names for part in parts.values() if part.names), ())
    found = np.unique(np.concatenate([part.y for part in parts.values()]))
    if known:
        if found[0] < 0 or found[-1] >= len(known):
            raise ValueError(f"labels run from {found[0]} to {found[-1]}, but {len(known)} classes have names")
        return parts, known
    anew = {key: part._replace(y=np.searchsorted(found, part.y)) for key, part in parts.items()}
    return anew, tuple(map(str, found))
