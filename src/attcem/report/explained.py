"""Pictures of what a defence looks at: those that `attcem explain` has put beside a result."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass

from PIL import Image

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


def figure(explanation: Explanation) -> Figure:
    """A picture inside an address, as large as its resolution says it was meant."""
    with Image.open(io.BytesIO(explanation.png), formats=["PNG"]) as picture:
        scale = PAGE_DENSITY / (picture.info.get("dpi", (0, 0))[0] or PAGE_DENSITY)
        width, height = (round(length * scale) for length in picture.size)
    source = "data:image/png;base64," + base64.b64encode(explanation.png).decode()
    return Figure(explanation.title, explanation.caption, source, width, height)
