"""Accuracy against leakage: every defence at its strengths, between no defence and the mean image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attcem.figures.bars import draw_bars, draw_mean_image
from attcem.figures.group import Drawn, Group
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

    def mark(name: str, strengths: Sequence[Drawn], style: dict[str, Any]) -> None:
        errors = [[run.worst.mse for run in drawn.runs] for drawn in strengths]
        draw_bars(axes, errors, [[run.accuracy for run in drawn.runs] for drawn in strengths], elinewidth=0.6, **style)
        entries.append(Entry(name, style))

    for floor in group.undefended[:1]:
        axes.axvline(floor.setting.mse, color="0.5", linestyle=":", linewidth=0.8, zorder=0)
    for drawn in group.undefended:
        mark(drawn.name, [drawn], UNDEFENDED.dot | {"markersize": 7})
    for defence in group.defences:
        mark(defence.name, defence.strengths, defence.look.line)
    axes.set(xlabel="worst-case MSE (further right hides more)", ylabel="accuracy")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]))
    legend(figure, entries)
    return figure
