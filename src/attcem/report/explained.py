"""What each run's defence looks at: the pictures that `attcem explain` has put beside its result."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image

from attcem.report.settings import Setting
from attcem.types import Explanation

PAGE_DENSITY = 96
"""Dots per inch of a page at its own size."""


@dataclass(frozen=True)
class Figure:
    """One picture with its words; the width is in pixels of the page."""

    title: str
    caption: str
    source: str
    width: int
    height: int


@dataclass(frozen=True)
class View:
    """All pictures of one run."""

    name: str
    place: tuple[str, str]
    figures: list[Figure]


def views(settings: Sequence[Setting]) -> list[View]:
    """The runs that were explained."""
    return [
        View(setting.label(run), setting.place, [figure(explanation) for explanation in run.explanations])
        for setting in settings
        for run in setting.runs
        if run.explanations
    ]


def figure(explanation: Explanation) -> Figure:
    """A picture inside an address, as large as its resolution says it was meant."""
    with Image.open(io.BytesIO(explanation.png)) as picture:
        scale = PAGE_DENSITY / picture.info.get("dpi", (PAGE_DENSITY, PAGE_DENSITY))[0]
        width, height = (round(length * scale) for length in picture.size)
    source = "data:image/png;base64," + base64.b64encode(explanation.png).decode()
    return Figure(explanation.title, explanation.caption, source, width, height)
