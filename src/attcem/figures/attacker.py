"""What more sends, or more public images, buy the attacker."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from attcem.figures.group import MOST, Group
from attcem.figures.style import COLUMN, MEAN_IMAGE, Entry, blank, legend
from attcem.figures.tradeoff import bar
from attcem.report.numbers import is_number, mean

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
    ceiling = group.baseline("mean_image")
    if is_number(ceiling):
        axes.axhline(ceiling, zorder=0, **MEAN_IMAGE.style)
    for one in drawn:
        table = {step: [run.curves[key][step] for run in one.runs if step in run.curves.get(key, {})] for step in steps}
        reached = [(place, table[step]) for place, step in enumerate(steps) if table[step]]
        axes.errorbar(
            [place for place, _ in reached],
            [mean(values) for _, values in reached],
            yerr=[bar(values) for _, values in reached],
            elinewidth=0.6,
            **one.look.line,
        )
    axes.set_xticks(range(len(steps)), steps)
    axes.set_ylim(bottom=0)
    axes.set(xlabel=label, ylabel="MSE (lower leaks more)")
    entries = [Entry(one.name, one.look.line) for one in drawn]
    legend(figure, [MEAN_IMAGE, *entries] if is_number(ceiling) else entries)
    return figure


def amount(step: str) -> float:
    """How much a step is; "all" is the most."""
    try:
        return float(step)
    except ValueError:
        return float("inf")


repeats = partial(effort, key="repeats", label="sends of the same image, averaged")
pairs = partial(effort, key="pairs", label="public images that the attacker owns")
