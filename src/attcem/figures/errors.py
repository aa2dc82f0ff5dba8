"""Plots of errors, with bars over seeds: by accuracy, by class, by the attacker's effort, and beside their bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from attcem.figures.group import MOST, Drawn, Group
from attcem.figures.style import COLUMN, PAGE, UNDEFENDED, Entry, blank, short, with_legend, wrapped
from attcem.runs.numbers import amount, is_number, mean, spread
from attcem.types import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE = 8  # more names than this need both columns of a page
LISTED = 20  # of more classes than this, those that leak most are listed
MEAN_IMAGE = Entry("mean image", {"color": "0.5", "linestyle": "--", "linewidth": 0.8})
MEASURED = Entry("worst attack, measured", {"color": "black", "marker": "o", "linestyle": "none"})
ESTIMATES: dict[str, tuple[Callable[[Result], Any], dict[str, Any]]] = {
    "estimate from the rate": (lambda run: run.bounds.get("mse_floor_estimate"), {"marker": "|", "markersize": 9}),
    "estimate from slopes (Fisher)": (lambda run: (run.bounds.get("fisher") or {}).get("mse"), {"marker": "x"}),
}
Seeds = Sequence[float]  # one value per seed


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
    axes.set(xlabel="worst-case MSE (further right hides more)", ylabel="accuracy", xlim=(0, None))
    axes.set_ylim(bottom=max(0.0, axes.get_ylim()[0]))
    draw_ratio(axes, group.mean_image)
    return with_legend(figure, entries)


def draw_ratio(axes: Axes, free: float) -> None:
    """A second scale above the first: MSE over the mean image's; none where that was not measured."""
    if is_number(free) and free > 0:
        above = axes.secondary_xaxis(
            "top", functions=(lambda mse: np.asarray(mse) / free, lambda over: np.asarray(over) * free)
        )
        above.set_xlabel("MSE ratio (1: the mean image)")


def per_class(one: Drawn) -> dict[str, list[float]]:
    """Class → its worst-case MSE for every seed that recorded it."""
    found: dict[str, list[float]] = {}
    for run in one.runs:
        for name, row in run.per_class.items():
            if is_number(row.get("mse")):
                found.setdefault(name, []).append(row["mse"])
    return found


def classes(group: Group) -> Figure | None:
    """A line per class, a mark per defence: its worst-case MSE there, ± one standard deviation over seeds."""
    recorded = [(one, errors) for one in group.drawn if (errors := per_class(one))][:MOST]
    if not recorded:
        return None
    drawn, tables = zip(*recorded, strict=True)
    found = {name: mean([mean(table.get(name, [])) for table in tables]) for table in tables for name in table}
    ordered = sorted(found, key=lambda name: found[name])
    listed = ordered[:LISTED]
    figure = blank(COLUMN, 0.8 + 0.15 * len(listed) + 0.13 * len(drawn))
    axes = figure.subplots()
    for number, (one, table) in enumerate(recorded):
        shift = 0.5 * (number / max(1, len(drawn) - 1) - 0.5)
        found_at = {place + shift: table[name] for place, name in enumerate(listed) if table.get(name)}
        style = one.look.dot | {"markersize": 3.5, "elinewidth": 0.6, "capsize": 0}
        draw_bars(axes, list(found_at.values()), list(found_at), **style)
    axes.set_yticks(range(len(listed)), [short(name, 18) for name in listed])
    axes.set(xlim=(0, None), ylim=(len(listed) - 0.4, -0.6))
    axes.grid(axis="y", linewidth=0.3, color="0.85")
    axes.set_axisbelow(True)
    more = f"; {len(listed)} of {len(ordered)} classes" if len(listed) < len(ordered) else ""
    axes.set_xlabel(f"worst-case MSE (class that leaks most on top{more})")
    return with_legend(figure, [Entry(one.name, one.look.dot) for one in drawn])


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
    axes.set(xlabel=label, ylabel="MSE (lower leaks more)", ylim=(0, None))
    return with_legend(figure, entries)


repeats = partial(effort, key="repeats", label="sends of the same image, averaged")
pairs = partial(effort, key="pairs", label="public images that the attacker owns")


def floors(group: Group) -> Figure | None:
    """A line per defence: its worst-case MSE ± one standard deviation over seeds, and the estimated floors."""
    reads = [read for read, _ in ESTIMATES.values()]
    drawn = [one for one in group.drawn if any(is_number(read(run)) for read in reads for run in one.runs)]
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
    axes.set(xlabel="MSE", xlim=(0, None), ylim=(len(drawn) - 0.5, -0.5))
    return with_legend(figure, entries)
