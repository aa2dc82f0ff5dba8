"""Which classes get a row of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Int64

MOST_ROWS = 12


def chosen_rows(y: Int64[np.ndarray, " m"], score: Callable[[int], float]) -> list[int]:
    """All classes, or as many as fit with the highest scores, in their own order."""
    present = [int(c) for c in np.unique(y)]
    return sorted(sorted(present, key=score, reverse=True)[:MOST_ROWS])


def of_how_many(shown: list[int], y: Int64[np.ndarray, " m"], why: str) -> str:
    """A sentence for when not all classes are shown."""
    present = len(np.unique(y))
    return f" Shown are {len(shown)} of {present} classes: {why}." if len(shown) < present else ""
