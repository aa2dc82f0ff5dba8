"""How training went: the same few curves for every run, one run or all of them at a time."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from attcem.language import ENGLISH, Say, phrase
from attcem.report.charts import Chart, Drawing, Grid, Trace, axis, colour, coloured, curve
from attcem.runs import Setting
from attcem.runs.numbers import Show, count, is_number, ratio, scientific, small
from attcem.types import Result

ALL = phrase("all runs")
POINTS = 100  # a longer training is drawn at so many of its epochs, evenly, the last among them
FEW = 12  # up to so many epochs each has its tick


@dataclass(frozen=True)
class Measure:
    """One chart: the columns of a history that it shows, the validation's among them."""

    title: str
    note: str
    columns: tuple[str, ...]
    show: Show = small
    axis: dict[str, Any] = field(default_factory=dict)


MEASURES = (
    Measure(phrase("Task loss"), phrase("Cross-entropy; dashed on validation images."), ("loss", "val_loss")),
    Measure(
        phrase("Accuracy"),
        phrase("Dashed on validation images."),
        ("accuracy", "val_accuracy"),
        ratio,
        {"tickformat": ".0%"},
    ),
    Measure(
        phrase("Penalty"), phrase("On the scale of its own defence: not comparable between defences."), ("penalty",)
    ),
    Measure(
        phrase("Intra-class MSE"),
        phrase("How far latents of a class lie from its centres."),
        ("intra_mse",),
        scientific,
    ),
    Measure(
        phrase("Gate means"),
        phrase("1 lets a variance count, 0 leaves it out."),
        ("dim_gate", "snr_gate", "class_gate"),
        ratio,
        {"range": [0, 1.03]},
    ),
    Measure(phrase("Learning rate"), phrase("Of the first group of parameters."), ("lr",), scientific),
    Measure(
        phrase("Effective weight"),
        phrase("λ times its schedule: how hard the penalty really pulls."),
        ("penalty_weight",),
    ),
)
NAMES = dict.fromkeys(("val_loss", "val_accuracy"), phrase("validation"))
NAMES |= dict.fromkeys(("loss", "accuracy"), phrase("train"))


class Training(NamedTuple):
    """The charts, and the names of the runs that a reader can pick, the first of which is shown."""

    picks: list[str]
    charts: list[Chart]
    legend: list[tuple[str, str]]  # setting → its colour, where all runs are drawn together


def training(settings: Sequence[Setting], say: Say = ENGLISH) -> Training | None:
    several = len({setting.place for setting in settings if any(run.history for run in setting.runs)}) > 1
    runs: dict[str, tuple[Result, int | None]] = {}
    legend: dict[str, str] = {}
    for setting, place in coloured(settings):
        for run in setting.runs:
            if run.history:
                runs[say.again(setting.label(run)) + (f" ({' · '.join(setting.place)})" if several else "")] = (
                    run,
                    place,
                )
                legend[say.again(setting.name)] = colour(place).lstrip("@")
    charts = [chart for measure in MEASURES if (chart := _chart(measure, runs, say))]
    return Training([say(ALL)] * (len(runs) > 1) + list(runs), charts, list(legend.items())) if runs else None


def _chart(measure: Measure, runs: Mapping[str, tuple[Result, int | None]], say: Say) -> Chart | None:
    alone: dict[str, Drawing] = {}
    together: list[Trace] = []
    lines: list[list[str]] = []
    for label, (run, place) in runs.items():
        columns = _columns(measure, run)
        if not columns:
            continue
        epochs, traces = [row["epoch"] for row in _rows(run)], []
        for own, (name, values) in enumerate(columns.items()):
            dashed = {"line": {"color": colour(own), "width": 2, "dash": "dash"}} if "val_" in name else {}
            shown = say(NAMES[name]) if name in NAMES else _of_its_link(name, columns)
            traces.append(curve(shown, epochs, values, own, showlegend=len(columns) > 1, **dashed))
            last = next((value for value in reversed(values) if is_number(value)), None)
            lines.append([label, name, count(len(run.history)), measure.show(last)])
        alone[label] = Drawing(traces, _layout(measure, [run], say))
        main = next((name for name in columns if "val_" in name), next(iter(columns)))
        together.append(curve(label, epochs, columns[main], place, mode="lines", showlegend=False))
    everyone = (
        {say(ALL): Drawing(together, _layout(measure, [run for run, _ in runs.values()], say))} if len(runs) > 1 else {}
    )
    table = Grid([say("run"), say("column"), say("epochs"), say("last")], lines, 2)
    return Chart(say(measure.title), say(measure.note), everyone | alone, table, 230) if alone else None


def _columns(measure: Measure, run: Result) -> dict[str, list[float | None]]:
    """The measure's columns in a run's history, whoever wrote them, unless they are empty or zero throughout."""
    rows = _rows(run)
    names = dict.fromkeys(name for row in rows for name in row if name.rpartition("/")[2] in measure.columns)
    found = {name: [row.get(name) for row in rows] for name in names}
    return {name: values for name, values in found.items() if any(is_number(value) and value for value in values)}


def _rows(run: Result) -> list[dict[str, float]]:
    step = math.ceil(len(run.history) / POINTS)
    return [{"epoch": i + 1} | row for i, row in enumerate(run.history[::-step][::-1])]


def _of_its_link(name: str, columns: Iterable[str]) -> str:
    """A column's words, with its link's name only where another link has the same column."""
    link, _, figure = name.rpartition("/")
    shared = sum(other.rpartition("/")[2] == figure for other in columns) > 1
    return f"{link} {figure.replace('_', ' ')}" if shared else figure.replace("_", " ")


def _layout(measure: Measure, runs: Sequence[Result], say: Say) -> dict[str, Any]:
    """Epochs below, and of a single run the epochs shaded in which its penalty was shut off."""
    few = {"dtick": 1} if max(len(run.history) for run in runs) <= FEW else {}
    shaded = shut_off(runs[0]) if len(runs) == 1 else []
    return {"xaxis": axis(say("epoch"), **few), "yaxis": measure.axis, "shapes": shaded}


def shut_off(run: Result) -> list[dict[str, Any]]:
    """A band over epochs in which the penalty was zero by its own rule, in quarters of their steps."""
    bands: list[dict[str, Any]] = []
    half = math.ceil(len(run.history) / POINTS) / 2
    for row in _rows(run):
        start, end = row["epoch"] - half, row["epoch"] + half
        shares = [value for name, value in row.items() if name.rpartition("/")[2] == "shut_off" and is_number(value)]
        quarters = math.ceil(4 * min(1.0, max([0.0, *shares])))
        opacity = 0.06 * quarters
        if bands and (bands[-1]["x1"], bands[-1]["opacity"]) == (start, opacity):
            bands[-1]["x1"] = end
        elif quarters > 0:
            where = {"x0": start, "x1": end, "y0": 0, "y1": 1, "yref": "paper", "layer": "below"}
            bands.append({"type": "rect", "fillcolor": "@c1", "opacity": opacity, "line": {"width": 0}} | where)
    return bands
