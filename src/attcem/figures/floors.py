"""Bounds beside measurements: what attacks reached, and where theory estimates that it gets hard."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attcem.figures.bars import draw_bars, draw_mean_image
from attcem.figures.group import Group
from attcem.figures.style import COLUMN, Entry, blank, legend, wrapped
from attcem.runs.numbers import is_number, mean
from attcem.types import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURED = Entry("worst attack, measured", {"color": "black", "marker": "o", "linestyle": "none"})
Read = Callable[[Result], Any]
ESTIMATES: dict[str, tuple[Read, dict[str, Any]]] = {
    "estimate from the rate": (lambda run: run.bounds.get("mse_floor_estimate"), {"marker": "|", "markersize": 9}),
    "estimate from slopes (Fisher)": (lambda run: (run.bounds.get("fisher") or {}).get("mse"), {"marker": "x"}),
}


def floors(group: Group) -> Figure | None:
    """A line per defence: its worst-case MSE ± one standard deviation over seeds, and the estimated floors."""
    drawn = [
        one for one in group.drawn if any(is_number(read(run)) for read, _ in ESTIMATES.values() for run in one.runs)
    ]
    if not drawn:
        return None
    figure = blank(COLUMN, 1.3 + 0.3 * len(drawn))
    axes = figure.subplots()
    entries = [MEASURED, *draw_mean_image(axes, group.mean_image)]
    places = list(range(len(drawn)))
    draw_bars(axes, [[run.worst.mse for run in one.runs] for one in drawn], places, **MEASURED.style)
    for name, (read, style) in ESTIMATES.items():
        found = [mean([read(run) for run in one.runs]) for one in drawn]
        if any(map(is_number, found)):
            entries.append(Entry(name, {"color": "#D55E00", "linestyle": "none"} | style))
            axes.plot(found, places, **entries[-1].style)
    axes.set_yticks(places, [wrapped(one.name, 20) for one in drawn])
    axes.set_ylim(len(drawn) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel("MSE")
    legend(figure, entries)
    return figure
