"""How training went: the same few curves for every run, one run or all of them at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attcem.report.charts import Chart, Drawing, Grid, Trace, axis, colour, coloured, curve
from attcem.runs import Setting
from attcem.runs.numbers import Show, count, is_number, ratio, scientific, small
from attcem.types import Result

ALL = "all runs"
POINTS = 100
"""A longer training is drawn at so many of its epochs, evenly, the last among them."""
FEW = 12
"""Up to so many epochs each has its tick."""


@dataclass(frozen=True)
class Measure:
    """One chart: the columns of a history that it shows, the validation's among them."""

    title: str
    note: str
    columns: tuple[str, ...]
    show: Show = small
    more: tuple[tuple[str, Any], ...] = ()


MEASURES = (
    Measure("Task loss", "Cross-entropy; dashed on validation images.", ("loss", "val_loss")),
    Measure("Accuracy", "Dashed on validation images.", ("accuracy", "val_accuracy"), ratio, (("tickformat", ".0%"),)),
    Measure("Penalty", "On the scale of its own defence: not comparable between defences.", ("penalty",)),
    Measure("Intra-class MSE", "How far latents of a class lie from its centres.", ("intra_mse",), scientific),
    Measure(
        "Gate means",
        "1 lets a variance count, 0 leaves it out.",
        ("dim_gate", "snr_gate", "class_gate"),
        ratio,
        (("range", [0, 1.03]),),
    ),
    Measure("Learning rate", "Of the first group of parameters.", ("lr",), scientific),
    Measure("Effective weight", "λ times its schedule: how hard the penalty really pulls.", ("penalty_weight",)),
)
NAMES = {"val_loss": "validation", "val_accuracy": "validation", "loss": "train", "accuracy": "train"}


@dataclass(frozen=True)
class Training:
    """The charts, and the names of the runs that a reader can pick, the first of which is shown."""

    picks: list[str]
    charts: list[Chart]
    legend: list[tuple[str, str]]
    """Setting → its colour, where all runs are drawn together."""


def training(settings: Sequence[Setting]) -> Training | None:
    """Curves of every run that has a history; nothing where none has."""
    several = len({setting.place for setting in settings if any(run.history for run in setting.runs)}) > 1
    runs: dict[str, tuple[Result, int | None]] = {}
    legend: dict[str, str] = {}
    for setting, place in coloured(settings):
        for run in setting.runs:
            if run.history:
                runs[setting.label(run) + (f" ({' · '.join(setting.place)})" if several else "")] = run, place
                legend[setting.name] = colour(place).lstrip("@")
    charts = [chart for measure in MEASURES if (chart := _chart(measure, runs))]
    return Training([ALL] * (len(runs) > 1) + list(runs), charts, list(legend.items())) if runs else None


def _chart(measure: Measure, runs: Mapping[str, tuple[Result, int | None]]) -> Chart | None:
    """The measure in each run alone, and in all together; nothing where none recorded it."""
    alone: dict[str, Drawing] = {}
    together: list[Trace] = []
    lines: list[list[str]] = []
    for label, (run, place) in runs.items():
        if columns := _columns(measure, run):
            alone[label] = Drawing(_alone(run, columns), _layout(measure, [run]))
            main = next((name for name in columns if "val_" in name), next(iter(columns)))
            together.append(curve(label, _epochs(run), columns[main], place, mode="lines", showlegend=False))
            epochs = count(len(run.history))
            lines += [[label, name, epochs, _last(values, measure.show)] for name, values in columns.items()]
    everyone = {ALL: Drawing(together, _layout(measure, [run for run, _ in runs.values()]))} if len(runs) > 1 else {}
    table = Grid(["run", "column", "epochs", "last"], lines, 2)
    return Chart(measure.title, measure.note, everyone | alone, table, 230) if alone else None


def _columns(measure: Measure, run: Result) -> dict[str, list[float | None]]:
    """The measure's columns in a run's history, whoever wrote them, unless they are empty or zero throughout."""
    rows = _rows(run)
    names = dict.fromkeys(name for row in rows for name in row if name.rpartition("/")[2] in measure.columns)
    found = {name: [row.get(name) for row in rows] for name in names}
    return {name: values for name, values in found.items() if any(is_number(value) and value for value in values)}


def _rows(run: Result) -> list[dict[str, float]]:
    step = math.ceil(len(run.history) / POINTS)
    return run.history[::-step][::-1]


def _epochs(run: Result) -> list[float]:
    return [row.get("epoch", i + 1) for i, row in enumerate(_rows(run))]


def _alone(run: Result, columns: dict[str, list[float | None]]) -> list[Trace]:
    traces = []
    for place, (name, values) in enumerate(columns.items()):
        dashed = {"line": {"color": colour(place), "width": 2, "dash": "dash"}} if "val_" in name else {}
        shown = NAMES.get(name) or _of_its_link(name, columns)
        traces.append(curve(shown, _epochs(run), values, place, showlegend=len(columns) > 1, **dashed))
    return traces


def _of_its_link(name: str, columns: Iterable[str]) -> str:
    """A column's words, with its link's name only where another link has the same column."""
    link, _, figure = name.rpartition("/")
    shared = sum(other.rpartition("/")[2] == figure for other in columns) > 1
    return f"{link} {figure.replace('_', ' ')}" if shared else figure.replace("_", " ")


def _layout(measure: Measure, runs: Sequence[Result]) -> dict[str, Any]:
    """Epochs below, and of a single run the epochs shaded in which its penalty was shut off."""
    few = {"dtick": 1} if max(len(run.history) for run in runs) <= FEW else {}
    shaded = shut_off(runs[0]) if len(runs) == 1 else []
    return {"xaxis": axis("epoch", **few), "yaxis": dict(measure.more), "shapes": shaded}


def shut_off(run: Result) -> list[dict[str, Any]]:
    """A band over epochs in which the penalty was zero by its own rule, in quarters of their steps."""
    bands: list[dict[str, Any]] = []
    half = math.ceil(len(run.history) / POINTS) / 2
    for epoch, row in zip(_epochs(run), _rows(run), strict=True):
        shares = [value for name, value in row.items() if name.rpartition("/")[2] == "shut_off" and is_number(value)]
        quarters = math.ceil(4 * min(1.0, max([0.0, *shares])))
        opacity = 0.06 * quarters
        if bands and (bands[-1]["x1"], bands[-1]["opacity"]) == (epoch - half, opacity):
            bands[-1]["x1"] = epoch + half
        elif quarters > 0:
            where = {"x0": epoch - half, "x1": epoch + half, "y0": 0, "y1": 1, "yref": "paper"}
            look = {"fillcolor": "@c1", "opacity": opacity, "line": {"width": 0}, "layer": "below"}
            bands.append({"type": "rect"} | where | look)
    return bands


def _last(values: Sequence[float | None], show: Show) -> str:
    return show(next((value for value in reversed(values) if is_number(value)), None))
