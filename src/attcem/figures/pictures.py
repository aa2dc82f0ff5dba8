"""Reconstructions: test images as they were, as each defence's best attack rebuilt them, and the mean image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from attcem.figures.group import Drawn, Group
from attcem.figures.style import COLUMN, PAGE, TALLEST, blank, wrapped
from attcem.runs.leak import best_attack
from attcem.runs.numbers import small

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ACROSS = 10  # pictures in a row, at most
LETTERS = 20  # of a line of a row's name
Row = tuple[str, np.ndarray]  # a row's name, and its pictures (n h w c)


def rows_of(drawn: Sequence[Drawn]) -> list[Row]:
    """Original, one row per defence, mean image; a run that was attacked on other pictures is left out."""
    found: list[Row] = []
    last: list[Row] = []
    for one in drawn:
        shown = ((run, best_attack(run, run.gallery)) for run in one.runs if "original" in run.gallery)
        run, best = next(((run, best) for run, best in shown if best), (None, None))
        if run is None or best is None:
            continue
        rebuilt = run.gallery[best][:ACROSS]
        original = run.gallery["original"][: len(rebuilt)]
        if found and not np.array_equal(found[0][1], original):
            continue
        if not found:
            found.append(("original", original))
            last = [("mean image", run.gallery["mean_image"])] if "mean_image" in run.gallery else []
        found.append((f"{wrapped(one.name, LETTERS)}\naccuracy {run.accuracy:.3f}", rebuilt))
    return found + last


def pictures(group: Group) -> Figure | None:
    rows = rows_of(group.drawn)
    if not rows:
        return None
    originals = rows[0][1]
    width = PAGE if len(originals) > 4 else COLUMN
    margin = 0.065 * max(len(line) for name, _ in rows for line in name.splitlines())
    cell = min((width - margin) / len(originals), (TALLEST - 0.3) / len(rows) - 0.16)
    tight = {"w_pad": 0.02, "h_pad": 0.02, "wspace": 0.0, "hspace": 0.0}
    figure = blank(margin + cell * len(originals), 0.3 + (cell + 0.16) * len(rows), **tight)
    grid = figure.subplots(len(rows), len(originals), squeeze=False)
    for line, (name, shown) in enumerate(rows):
        for column, original in enumerate(originals):
            axes = grid[line][column]
            colours = np.broadcast_to(shown[column], (*shown[column].shape[:2], 3))  # grey: three equal channels
            axes.imshow(colours, interpolation="nearest")
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
            if line > 0:
                axes.set_xlabel(small(error(shown[column], original)), fontsize=5.5, labelpad=1)
        grid[line][0].set_ylabel(name, rotation=0, ha="right", va="center", labelpad=4)
    return figure


def error(picture: np.ndarray, original: np.ndarray) -> float:
    """MSE of pixels in [0,1]."""
    return float(np.mean((picture.astype(np.float64) - original) ** 2)) / 255**2
