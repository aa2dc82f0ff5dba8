"""The gallery: the same test pictures as they were, and as the cloud rebuilt them."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from attcem.report.numbers import small
from attcem.report.settings import Setting
from attcem.report.tables import BASELINES, best_attack
from attcem.types import Result

COMFORTABLE = 84
"""Width in pixels at which a small picture is easy to see."""


@dataclass(frozen=True)
class Picture:
    """One cell: a picture as a data address, what it shows in words, and its MSE if known."""

    source: str
    alt: str
    mse: str


@dataclass(frozen=True)
class Strip:
    """One row of the gallery."""

    title: str
    note: str
    kind: str
    pictures: list[Picture]


@dataclass
class Gallery:
    """Runs that show the same test pictures."""

    place: tuple[str, str]
    labels: list[str]
    width: int
    shown: list[Strip] = field(default_factory=list)
    folded: list[Strip] = field(default_factory=list)


def data_address(picture: np.ndarray) -> str:
    """A picture (h w, h w 1 or h w 3, uint8) as a PNG inside an address."""
    flat = picture[..., 0] if picture.ndim == 3 and picture.shape[-1] == 1 else picture
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(flat)).save(file, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def comfortable_width(width: int) -> int:
    """A whole multiple of the width that is easy to see; large pictures shrink.

    >>> comfortable_width(28), comfortable_width(32), comfortable_width(64), comfortable_width(224)
    (84, 96, 64, 96)
    """
    return min(96, width * max(1, round(COMFORTABLE / width)))


def galleries(settings: Sequence[Setting]) -> list[Gallery]:
    """One gallery per set of test pictures."""
    found: dict[tuple[tuple[str, str], bytes], list[tuple[Setting, Result]]] = {}
    for setting in settings:
        for run in setting.runs:
            if "original" in run.gallery:
                key = (setting.place, run.gallery["original"].tobytes())
                found.setdefault(key, []).append((setting, run))
    return [_gallery(members) for members in found.values()]


def _gallery(members: list[tuple[Setting, Result]]) -> Gallery:
    setting, first = members[0]
    gallery = Gallery(setting.place, first.labels, comfortable_width(first.gallery["original"].shape[2]))
    gallery.shown.append(_strip(first, "original", "original", "what the device saw", "original"))
    seen: set[str] = set()
    for setting, run in members:
        best = best_attack(run, list(run.gallery))
        title = "no defence" if setting.label(run) == "none" else setting.label(run)
        kind = "undefended" if setting.undefended else "defended"
        where = gallery.folded if setting.name in seen else gallery.shown  # further seeds of a setting fold
        if best is not None:
            where.append(_strip(run, best, title, f"best attack: {best}", kind))
            seen.add(setting.name)
        others = [name for name in run.gallery if name in run.attacks and name != best]
        gallery.folded += [_strip(run, name, title, f"attack: {name}", kind) for name in others]
    for name, title in BASELINES.items():
        if name in first.gallery:
            where = gallery.shown if name == "mean_image" else gallery.folded
            where.append(_strip(first, name, title, "no latent needed", "baseline"))
    return gallery


def _strip(run: Result, row: str, title: str, note: str, kind: str) -> Strip:
    errors = run.per_image.get(f"{row}/mse", np.empty(0))
    pictures = [
        Picture(
            data_address(picture),
            f"{title}, {note}: picture {i + 1}" + (f", {run.labels[i]}" if i < len(run.labels) else ""),
            small(errors[i]) if i < len(errors) else "",
        )
        for i, picture in enumerate(run.gallery[row])
    ]
    return Strip(title, note, kind, pictures)
