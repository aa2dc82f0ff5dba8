"""Points with bars over seeds, and the line of the mean image: what every plot of errors shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attcem.figures.style import Entry
from attcem.runs.numbers import is_number, mean, spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEAN_IMAGE = Entry("mean image", {"color": "0.5", "linestyle": "--", "linewidth": 0.8})
Seeds = Sequence[float]
"""One value per seed."""


def bar(values: Seeds) -> float:
    """Half an error bar: one standard deviation over seeds, nothing for one seed."""
    width = spread(values)
    return 0.0 if math.isnan(width) else width


def draw_bars(axes: Axes, xs: Sequence[float | Seeds], ys: Sequence[float | Seeds], **style: Any) -> None:
    """Means with their bars, in the direction in which there are seeds."""
    (x, x_bars), (y, y_bars) = map(_means_and_bars, (xs, ys))
    axes.errorbar(x, y, xerr=x_bars, yerr=y_bars, **style)


def _means_and_bars(values: Sequence[Any]) -> tuple[list[float], list[float] | None]:
    if not any(isinstance(each, Sequence) for each in values):
        return list(values), None
    return [mean(seeds) for seeds in values], [bar(seeds) for seeds in values]


def draw_mean_image(axes: Axes, mse: float, *, vertical: bool = True) -> list[Entry]:
    """A line where nothing is left to see, and its entry in the legend; nothing where it was not measured."""
    if not is_number(mse):
        return []
    (axes.axvline if vertical else axes.axhline)(mse, zorder=0, **MEAN_IMAGE.style)
    return [MEAN_IMAGE]
