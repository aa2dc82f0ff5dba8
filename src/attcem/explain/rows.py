"""Which classes get a row of their own, and what stands at its left."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int64, UInt8

from attcem.explain.canvas import Canvas

MOST_ROWS = 12
NAME = 128
"""Room for the name of a class."""


def chosen_rows(y: Int64[np.ndarray, " m"], score: Callable[[int], float]) -> list[int]:
    """All classes, or as many as fit with the highest scores, in their own order."""
    present = [int(c) for c in np.unique(y)]
    return sorted(sorted(present, key=score, reverse=True)[:MOST_ROWS])


def of_how_many(shown: list[int], y: Int64[np.ndarray, " m"], why: str) -> str:
    """A sentence for when not all classes are shown."""
    present = len(np.unique(y))
    return f" Shown are {len(shown)} of {present} classes: {why}." if len(shown) < present else ""


def name_row(sheet: Canvas, y: float, name: str, note: str = "") -> None:
    """The class's name, and something small under it."""
    sheet.text(0, y - (8 if note else 0), name, room=NAME - 12)
    sheet.note(0, y + 9, note)


def tinted(
    picture: UInt8[np.ndarray, "h w 3"], colours: UInt8[np.ndarray, "a b 3"], strength: Float[np.ndarray, "a b"]
) -> UInt8[np.ndarray, "h w 3"]:
    """A picture in grey under colours of a coarser grid, each as strong as it says."""
    h, w = picture.shape[:2]
    down, across = np.arange(h) * colours.shape[0] // h, np.arange(w) * colours.shape[1] // w
    cover = strength[np.ix_(down, across)][..., None]
    grey = picture.mean(2, keepdims=True)
    return ((1 - cover) * grey + cover * colours[np.ix_(down, across)]).round().astype(np.uint8)
