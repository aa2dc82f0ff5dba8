"""Leakage per class: a mean may hide a class that leaks much more than the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attcem.figures.bars import draw_bars
from attcem.figures.group import MOST, Drawn, Group
from attcem.figures.style import COLUMN, Entry, blank, legend, short
from attcem.runs.numbers import is_number, mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LISTED = 20
"""Of more classes than this, those that leak most are listed."""


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
    ordered = sorted((name for name in found if is_number(found[name])), key=lambda name: found[name])
    listed = ordered[:LISTED]
    figure = blank(COLUMN, 0.8 + 0.15 * len(listed) + 0.13 * len(drawn))
    axes = figure.subplots()
    for number, (one, table) in enumerate(recorded):
        shift = 0.5 * (number / max(1, len(drawn) - 1) - 0.5)
        found_at = {place + shift: table[name] for place, name in enumerate(listed) if table.get(name)}
        style = one.look.dot | {"markersize": 3.5, "elinewidth": 0.6, "capsize": 0}
        draw_bars(axes, list(found_at.values()), list(found_at), **style)
    axes.set_yticks(range(len(listed)), [short(name, 18) for name in listed])
    axes.set_ylim(len(listed) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.grid(axis="y", linewidth=0.3, color="0.85")
    axes.set_axisbelow(True)
    more = f"; {len(listed)} of {len(ordered)} classes" if len(listed) < len(ordered) else ""
    axes.set_xlabel(f"worst-case MSE (class that leaks most on top{more})")
    legend(figure, [Entry(one.name, one.look.dot) for one in drawn])
    return figure
