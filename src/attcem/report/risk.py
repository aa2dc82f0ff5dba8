"""Whom the leak hits and when it grows: by picture, by class, by repeated sends, by the attacker's data, by stage."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from attcem.report.charts import Chart, Drawing, Grid, Trace, axis, bars, coloured, curve, points, words
from attcem.report.tables import METRICS
from attcem.runs import Setting
from attcem.runs.leak import worst_per_image
from attcem.runs.numbers import amount, is_number, mean
from attcem.types import Result

SHOWN = ("mse", "ssim")
QUANTILES = np.linspace(0, 100, 51)
QUOTED = (1, 5, 25, 50, 75, 95, 99)
"""Percentiles that stand in the table."""
VISIBLE = 8
"""More curves than this wait in the legend to be asked for."""
STAGES = {"before_bottleneck": "before the bottleneck", "clean": "clean latent", "released": "released"}

Draw = Callable[[Setting, int | None, str], tuple[Trace, list[float]] | None]
"""A setting, the place of its colour and a metric → what is drawn, and the numbers behind it."""


def charts(settings: Sequence[Setting]) -> list[Chart]:
    """Those of one place that can be drawn."""
    drawn = (
        by_picture(settings),
        by_class(settings),
        by_option(settings, "repeats", "Sent again and again", "sends of each picture",
                  "A device that sends a picture several times averages its own noise away."),
        by_option(settings, "pairs", "With more pictures of their own", "public pictures the attacker owns",
                  "The same attack, trained on fewer public pictures."),
        by_stage(settings),
    )  # fmt: skip
    return [chart for chart in drawn if chart is not None]


def _draw(
    settings: Sequence[Setting], metrics: Sequence[str], draw: Draw, layout: Callable[[str], dict[str, Any]]
) -> tuple[dict[str, Drawing], list[list[str]]]:
    """A drawing per metric that some setting has, and the lines of the table behind them."""
    drawings, lines = {}, []
    for metric in metrics:
        traces: list[Trace] = []
        for setting, place in coloured(settings):
            if drawn := draw(setting, place, metric):
                hidden = {"visible": "legendonly"} if len(traces) >= VISIBLE else {}
                traces.append(drawn[0] | hidden)
                lines.append([setting.name, metric.upper(), *map(METRICS[metric], drawn[1])])
        if traces:
            drawings[metric.upper()] = Drawing(traces, layout(metric.upper()))
    return drawings, lines


def by_picture(settings: Sequence[Setting]) -> Chart | None:
    """The worst case of every attacked picture, from the one that leaks most to the one that leaks least."""

    def draw(setting: Setting, place: int | None, metric: str) -> tuple[Trace, list[float]] | None:
        xs, ys = _quantiles(setting.runs[0], metric)
        if not len(xs):
            return None
        return curve(setting.name, xs, ys, place, mode="lines"), np.interp(QUOTED, xs, ys).tolist()

    across = axis("share of pictures, most leaking first", ticksuffix=" %", range=[0, 100])
    drawings, lines = _draw(settings, SHOWN, draw, lambda name: {"xaxis": across, "yaxis": _from_zero(name)})
    note = "A good mean can hide a few pictures that leak entirely: they stand at the left end."
    table = Grid(["setting", "metric", *(f"{quantile} %" for quantile in QUOTED)], lines, 2)
    return Chart("Picture by picture", note, drawings, table) if drawings else None


def _from_zero(title: str) -> dict[str, Any]:
    return axis(title, rangemode="tozero")


def _quantiles(run: Result, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Share of pictures that leak at least this much, and how much that is."""
    values = worst_per_image(run, metric)
    values = values[np.isfinite(values)]
    if len(values):
        found = np.percentile(values, QUANTILES)
        return QUANTILES, found if metric == "mse" else found[::-1]
    kept = run.risk.get("percentiles", {}).get(metric, {})
    known = sorted((int(name[1:]), value) for name, value in kept.items() if re.fullmatch(r"p\d\d", name, re.ASCII))
    at, ys = np.array(known, float).reshape(-1, 2).T
    return (at, ys) if metric == "mse" else (100 - at[::-1], ys[::-1])


def by_class(settings: Sequence[Setting]) -> Chart | None:
    """The worst case of every class."""
    classes = list(dict.fromkeys(name for setting in settings for run in setting.runs for name in run.per_class))

    def draw(setting: Setting, place: int | None, metric: str) -> tuple[Trace, list[float]] | None:
        means = [mean([run.per_class.get(name, {}).get(metric, np.nan) for run in setting.runs]) for name in classes]
        look = {"marker": {"size": 9, "opacity": 0.85}}
        return (points(setting.name, means, labels, place, **look), means) if any(map(is_number, means)) else None

    labels = [words(name) for name in classes]
    down = {"type": "category", "autorange": "reversed", "automargin": True}
    drawings, lines = _draw(
        settings,
        SHOWN,
        draw,
        lambda name: {"xaxis": _from_zero(f"worst-case {name}"), "yaxis": down, "hovermode": "closest"},
    )
    note = "The mean worst case of each class: a defence is as good as on the class it protects least."
    height = max(320, 100 + 22 * min(len(classes), 40))
    table = Grid(["setting", "metric", *classes], lines, 2)
    return Chart("Class by class", note, drawings, table, height) if drawings else None


def by_option(settings: Sequence[Setting], option: str, title: str, asked: str, note: str) -> Chart | None:
    """MSE of one decoder against something that the attacker may have more of."""
    steps = sorted({step for setting in settings for step in setting.runs[0].curves.get(option, {})}, key=amount)
    across = axis(asked, type="category", categoryorder="array", categoryarray=steps)
    layout = {"xaxis": across, "yaxis": _from_zero("MSE")}
    return _along(settings, option, dict(zip(steps, steps, strict=True)), curve, (title, note), layout)


def by_stage(settings: Sequence[Setting]) -> Chart | None:
    """One decoder before the bottleneck, after it, and on what is released."""
    known = {stage for setting in settings for stage in setting.runs[0].curves.get("stages", {})}
    steps = {stage: text for stage, text in STAGES.items() if stage in known}
    note = "The same decoder at every stage; only what is released leaves the device."
    layout = {"yaxis": axis("MSE"), "barmode": "group"}
    return _along(settings, "stages", steps, bars, ("Where the protection comes from", note), layout)


def _along(
    settings: Sequence[Setting],
    option: str,
    steps: Mapping[str, str],
    trace: Callable[[str, list[str], list[float], int | None], Trace],
    title_and_note: tuple[str, str],
    layout: dict[str, Any],
) -> Chart | None:
    """The mean MSE of every setting at each step; nothing where no setting has any."""

    def draw(setting: Setting, place: int | None, metric: str) -> tuple[Trace, list[float]] | None:
        if not setting.runs[0].curves.get(option):
            return None
        means = [mean([run.curves.get(option, {}).get(step, np.nan) for run in setting.runs]) for step in steps]
        return trace(setting.name, list(steps.values()), means, place), means

    drawings, lines = _draw(settings, ["mse"], draw, lambda _: layout)
    table = Grid(["setting", *steps.values()], [[name, *cells] for name, _, *cells in lines])
    return Chart(*title_and_note, drawings, table) if drawings else None
