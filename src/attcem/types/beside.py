"""What lies beside a result.json: strips of pictures, scores of every image, and explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from attcem.reading.arrays import read_arrays, read_png
from attcem.reading.plain import MEGABYTE, read_json
from attcem.reading.typed import from_plain

TRAINED = "train/"  # what comes from training, in the file that also holds a score for every image
LARGEST = 256 * MEGABYTE
Gallery = dict[str, UInt8[np.ndarray, "n h w c"]]


@dataclass(frozen=True)
class Explanation:
    """One picture of what a run's defence looks at, with its words: `attcem explain` makes it, the report shows it."""

    file: str
    title: str
    caption: str
    png: bytes = field(repr=False)

    @classmethod
    def read(cls, folder: Path) -> list[Explanation]:
        """Those that lie in a folder; none where nobody has explained anything."""
        path = folder / "entries.json"
        if not path.exists():
            return []
        try:
            entries = from_plain(list[dict[str, str]], read_json(path), path)
            return [cls(**entry, png=read_png(folder / Path(entry["file"]).name)[0]) for entry in entries]
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ValueError(
                f"{path} does not fit its pictures ({error}): run `attcem explain {folder.parent}` again, "
                f"or remove {folder}"
            ) from None


def read_gallery(folder: Path, pictures: int) -> Gallery:
    """Row name → its pictures, from strips of which the longest holds so many pictures side by side."""
    strips = {path: read_png(path)[1] for path in sorted(folder.glob("*.png"))}
    width = max((strip.shape[1] for strip in strips.values()), default=0) // max(1, pictures)
    for path, strip in strips.items():
        if width == 0 or strip.shape[1] % width:
            raise ValueError(f"{path} is {strip.shape[1]} pixels wide: it does not hold pictures of {width} pixels")
    return {path.stem: np.stack(np.split(strip, strip.shape[1] // width, axis=1)) for path, strip in strips.items()}


def read_scores(path: Path) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """`attack/metric` → a value per image, and `defence/figure` → a vector per epoch; nothing where nothing is kept."""
    if not path.exists():
        return {}, {}
    arrays = read_arrays(path, LARGEST)
    trained = {name.removeprefix(TRAINED): values for name, values in arrays.items() if name.startswith(TRAINED)}
    scores = {name: values for name, values in arrays.items() if not name.startswith(TRAINED)}
    for name, values in arrays.items():
        if values.dtype.kind not in "fiub" or values.ndim != 1 + name.startswith(TRAINED):
            raise ValueError(f"{path} is damaged: {name} holds {values.dtype} of shape {values.shape}, not numbers")
    if len({len(values) for values in scores.values()}) > 1:
        raise ValueError(f"{path} is damaged: its scores are not of the same number of images")
    return scores, trained


def check_shown(shown: Sequence[int], labels: Sequence[str], gallery: Gallery, scores: dict[str, np.ndarray]) -> None:
    """Raise where pictures, their labels and their places among the attacked images do not belong together."""
    attacked = min(map(len, scores.values()), default=None)
    if any(place < 0 or (attacked is not None and place >= attacked) for place in shown):
        raise ValueError(f"shown names images that were not attacked: there are {attacked}")
    if shown and len(shown) != len(labels):
        raise ValueError(f"shown names {len(shown)} images, labels {len(labels)}")
    kept = len(gallery.get("original", labels))
    if labels and kept != len(labels):
        raise ValueError(f"labels names {len(labels)} pictures, images/original.png holds {kept}")
