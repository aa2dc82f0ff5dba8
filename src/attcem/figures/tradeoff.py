"""Accuracy against leakage: every defence at its strengths, between no defence and the mean image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attcem.figures.bars import draw_bars, draw_mean_image
from attcem.figures.group import Group
from attcem.figures.style import COLUMN, PAGE, UNDEFENDED, Entry, blank, legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDE = 8
"""More names than this need both columns of a page."""


def tradeoff(group: Group) -> Figure:
    """Accuracy over worst-case MSE, ± one standard deviation over seeds, strengths joined by a line."""
    names = len(group.defences) + len(group.undefended) + 1
    wide = names > WIDE
    figure = blank(PAGE if wide else COLUMN, 3.2 + 0.07 * names if wide else 2.3 + 0.13 * names)
    axes = figure.subplots()
    entries = draw_mean_image(axes, group.mean_image)

    for floor in group.undefended[:1]:
        axes.axvline(floor.settings[0].mse, color="0.5", linestyle=":", linewidth=0.8, zorder=0)
    for drawn in (*group.undefended, *group.defences):
        style = drawn.look.dot | {"markersize": 7} if drawn.look is UNDEFENDED else drawn.look.line
        errors = [[run.worst.mse for run in setting.runs] for setting in drawn.settings]
        accuracies = [[run.accuracy for run in setting.runs] for setting in drawn.settings]
        draw_bars(axes, errors, accuracies, elinewidth=0.6, **style)
        entries.append(Entry(drawn.name, style))
    axes.set(xlabel="worst-case MSE (further right hides more)", ylabel="accuracy")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]))
    legend(figure, entries)
    return figure
