"""What more sends, or more public images, buy the attacker."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from attcem.figures.bars import draw_bars, draw_mean_image
from attcem.figures.group import MOST, Group
from attcem.figures.style import COLUMN, Entry, blank, legend
from attcem.runs.numbers import amount

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def effort(group: Group, key: str, label: str) -> Figure | None:
    """MSE of one attack at each effort, ± one standard deviation over seeds, below the mean image's."""
    drawn = [one for one in group.drawn if any(key in run.curves for run in one.runs)][:MOST]
    steps = sorted({step for one in drawn for run in one.runs for step in run.curves.get(key, {})}, key=amount)
    if not steps:
        return None
    figure = blank(COLUMN, 2.1 + 0.13 * (len(drawn) + 1))
    axes = figure.subplots()
    entries = draw_mean_image(axes, group.mean_image, vertical=False)
    for one in drawn:
        table = {step: [run.curves[key][step] for run in one.runs if step in run.curves.get(key, {})] for step in steps}
        reached = {place: table[step] for place, step in enumerate(steps) if table[step]}
        draw_bars(axes, list(reached), list(reached.values()), elinewidth=0.6, **one.look.line)
        entries.append(Entry(one.name, one.look.line))
    axes.set_xticks(range(len(steps)), steps)
    axes.set_ylim(bottom=0)
    axes.set(xlabel=label, ylabel="MSE (lower leaks more)")
    legend(figure, entries)
    return figure


repeats = partial(effort, key="repeats", label="sends of the same image, averaged")
pairs = partial(effort, key="pairs", label="public images that the attacker owns")
