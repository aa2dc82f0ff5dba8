"""Training curves: what every epoch recorded, the mean over seeds with a band from the lowest to the highest."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attcem.figures.group import MOST, Group
from attcem.figures.style import PAGE, Entry, blank, plain_log, with_legend
from attcem.language import phrase
from attcem.runs.numbers import is_number
from attcem.types import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = Mapping[str, float]


class Panel(NamedTuple):
    """One measure: its name, how it is read from an epoch, and its axis."""

    title: str
    read: Callable[[Row], float | None]
    log: bool = False
    limits: tuple[float, float] | None = None


def of_any_defence(figure: str) -> Callable[[Row], float | None]:
    return lambda row: next((value for name, value in row.items() if name.endswith(f"/{figure}")), None)


PANELS = (
    Panel(phrase("task loss"), lambda row: row.get("loss")),
    Panel(phrase("validation accuracy"), lambda row: row.get("val_accuracy")),
    Panel(phrase("penalty"), lambda row: row.get("penalty"), log=True),
    Panel(phrase("weight of the penalty"), lambda row: row.get("penalty_weight")),
    Panel(phrase("MSE within a class, latent"), of_any_defence("intra_mse"), log=True),
    Panel(phrase("share of steps shut off"), of_any_defence("shut_off"), limits=(-0.03, 1.03)),
)


def training(group: Group) -> Figure | None:
    drawn = [one for one in group.drawn if any(run.history for run in one.runs)][:MOST]
    panels = [panel for panel in PANELS if any(len(measured(one.runs, panel)[0]) for one in drawn)]
    if not panels:
        return None
    columns = 2 if len(panels) in (2, 4) else min(3, len(panels))
    lines = math.ceil(len(panels) / columns)
    figure = blank(PAGE * columns / 3, 1.75 * lines + 0.3 + 0.13 * math.ceil(len(drawn) / columns))
    axes = list(figure.subplots(lines, columns, squeeze=False).flat)
    for panel, plot in zip(panels, axes, strict=False):
        for one in drawn:
            epochs, values = measured(one.runs, panel)
            if epochs:
                plot.plot(epochs, values.mean(0), markersize=3, markevery=max(1, len(epochs) // 6), **one.look.line)
            if epochs and len(values) > 1:
                plot.fill_between(epochs, values.min(0), values.max(0), color=one.look.color, alpha=0.2, linewidth=0)
        plot.set(xlabel="epoch", ylabel=panel.title, yscale="log" if panel.log else "linear")
        plot.xaxis.get_major_locator().set_params(integer=True)
        plot.set_ylim(panel.limits)
        if panel.log:
            plain_log(plot.yaxis)
    for plot in axes[len(panels) :]:
        plot.set_axis_off()
    return with_legend(figure, [Entry(one.name, one.look.line) for one in drawn])


def measured(runs: Sequence[Result], panel: Panel) -> tuple[list[float], np.ndarray]:
    """Epochs, and a line per seed over those that all seeds have; what a log axis cannot show is left out."""
    tables = []
    for run in runs:
        read = {row.get("epoch", number + 1): panel.read(row) for number, row in enumerate(run.history)}
        table = {epoch: value for epoch, value in read.items() if is_number(value) and (value > 0 or not panel.log)}
        tables += [table] if table else []
    epochs = sorted(set.intersection(*map(set, tables))) if tables else []
    return epochs, np.array([[table[epoch] for epoch in epochs] for table in tables], dtype=np.float64)
