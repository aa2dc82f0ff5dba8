"""Accuracy against leakage: every defence at its strengths, between no defence and the mean image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attcem.figures.group import Drawn, Group
from attcem.figures.style import COLUMN, MEAN_IMAGE, PAGE, UNDEFENDED, Entry, blank, legend
from attcem.report.numbers import is_number, mean, spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE = 8
"""More names than this need both columns of a page."""


def worst_mse(drawn: Drawn) -> list[float]:
    """Worst-case MSE of every seed."""
    return [run.worst.mse for run in drawn.runs]


def bar(values: list[float]) -> float:
    """Half an error bar: one standard deviation over seeds, nothing for one seed."""
    width = spread(values)
    return 0.0 if math.isnan(width) else width


def tradeoff(group: Group) -> Figure:
    """Accuracy over worst-case MSE, ± one standard deviation over seeds, strengths joined by a line."""
    names = len(group.defences) + len(group.undefended) + 1
    wide = names > WIDE
    figure = blank(PAGE if wide else COLUMN, 3.2 + 0.07 * names if wide else 2.3 + 0.13 * names)
    axes = figure.subplots()
    entries = []
    ceiling = group.baseline("mean_image")
    if is_number(ceiling):
        axes.axvline(ceiling, zorder=0, **MEAN_IMAGE.style)
        entries.append(MEAN_IMAGE)
    for floor in group.undefended[:1]:
        axes.axvline(floor.setting.mse, color="0.5", linestyle=":", linewidth=0.8, zorder=0)
    for drawn in group.undefended:
        entries.append(Entry(drawn.name, UNDEFENDED.dot | {"markersize": 7}))
        marked(axes, [drawn], entries[-1].style)
    for defence in group.defences:
        entries.append(Entry(defence.name, defence.look.line))
        marked(axes, defence.strengths, entries[-1].style)
    axes.set(xlabel="worst-case MSE (further right hides more)", ylabel="accuracy")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]))
    legend(figure, entries)
    return figure


def marked(axes: Axes, strengths: Sequence[Drawn], style: dict[str, Any]) -> None:
    """Points with their bars."""
    accuracies = [[run.accuracy for run in drawn.runs] for drawn in strengths]
    errors = [worst_mse(drawn) for drawn in strengths]
    axes.errorbar(
        [mean(values) for values in errors],
        [mean(values) for values in accuracies],
        xerr=[bar(values) for values in errors],
        yerr=[bar(values) for values in accuracies],
        elinewidth=0.6,
        **style,
    )
