"""Whom the leak hits and when it grows: by picture, by class, by repeated sends, by the attacker's data, by stage."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attcem.report.charts import Chart, Drawing, Grid, Trace, axis, colour, curve, symbol, words
from attcem.report.numbers import MISSING, is_number, mean, ratio, small
from attcem.report.settings import Setting
from attcem.types import Result

METRICS: dict[str, Callable[[float | None], str]] = {"mse": small, "ssim": ratio}
QUANTILES = np.linspace(0, 100, 51)
QUOTED = ("p01", "p05", "p25", "p50", "p75", "p95", "p99")
VISIBLE = 8
"""More curves than this wait in the legend to be asked for."""
STAGES = {"before_bottleneck": "before the bottleneck", "clean": "clean latent", "released": "released"}


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


def placed(settings: Sequence[Setting]) -> list[tuple[Setting, int | None]]:
    """Every setting with the place of its colour; no defence has none."""
    defended = [setting for setting in settings if not setting.undefended]
    return [(s, None if s.undefended else defended.index(s)) for s in settings]


def waiting(count: int) -> dict[str, Any]:
    """Whether the curve after so many others is shown at once."""
    return {"visible": "legendonly"} if count >= VISIBLE else {}


def worst_per_image(run: Result, metric: str = "mse") -> np.ndarray:
    """What the best attack reached, image by image; empty when it was not kept."""
    if f"worst/{metric}" in run.per_image:
        return np.asarray(run.per_image[f"worst/{metric}"], dtype=float)
    names = [name for name in run.attacks if name not in run.repeated and f"{name}/{metric}" in run.per_image]
    kept = [np.asarray(run.per_image[f"{name}/{metric}"], float) for name in names]
    if not kept or len({len(values) for values in kept}) > 1:
        return np.empty(0)
    return (np.fmin if metric == "mse" else np.fmax).reduce(kept)


def by_picture(settings: Sequence[Setting]) -> Chart | None:
    """The worst case of every attacked picture, from the one that leaks most to the one that leaks least."""
    drawings, quoted = {}, {}
    for metric in METRICS:
        traces: list[Trace] = []
        for setting, place in placed(settings):
            xs, ys = _quantiles(setting.runs[0], metric)
            if len(xs):
                traces.append(curve(setting.title, xs, ys, place, mode="lines", **waiting(len(traces))))
                quoted[setting.title, metric] = [METRICS[metric](float(np.interp(int(p[1:]), xs, ys))) for p in QUOTED]
        if traces:
            layout = {"xaxis": axis("share of pictures, most leaking first", ticksuffix=" %", range=[0, 100])}
            drawings[metric.upper()] = Drawing(traces, layout | {"yaxis": axis(metric.upper(), rangemode="tozero")})
    if not drawings:
        return None
    note = "A good mean can hide a few pictures that leak entirely: they stand at the left end."
    lines = [[title, metric.upper(), *cells] for (title, metric), cells in quoted.items()]
    return Chart("Picture by picture", note, drawings, Grid(["setting", "metric", *_leak_order()], lines, 2))


def _leak_order() -> list[str]:
    return [f"{int(p[1:])} %" for p in QUOTED]


def _quantiles(run: Result, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Share of pictures that leak at least this much, and how much that is."""
    values = worst_per_image(run, metric)
    values = values[np.isfinite(values)]
    if len(values):
        found = np.percentile(values, QUANTILES)
        return QUANTILES, found if metric == "mse" else found[::-1]
    kept = run.risk.get("percentiles", {}).get(metric, {})
    points = sorted((int(name[1:]), value) for name, value in kept.items() if re.fullmatch(r"p\d\d", name, re.ASCII))
    at, ys = np.array(points, float).reshape(-1, 2).T
    return (at, ys) if metric == "mse" else (100 - at[::-1], ys[::-1])


def by_class(settings: Sequence[Setting]) -> Chart | None:
    """The worst case of every class."""
    classes = list(dict.fromkeys(name for setting in settings for run in setting.runs for name in run.per_class))
    drawings, lines = {}, {}
    for metric, show in METRICS.items():
        traces: list[Trace] = []
        for setting, place in placed(settings):
            means = [
                mean([run.per_class.get(name, {}).get(metric, np.nan) for run in setting.runs]) for name in classes
            ]
            if any(map(is_number, means)):
                traces.append(_dots(setting, classes, means, place, len(traces)))
                lines[setting.title, metric] = [show(value) for value in means]
        if traces:
            yaxis = {"type": "category", "autorange": "reversed", "automargin": True}
            layout = {"xaxis": axis(f"worst-case {metric.upper()}", rangemode="tozero"), "yaxis": yaxis}
            drawings[metric.upper()] = Drawing(traces, layout | {"hovermode": "closest"})
    if not drawings:
        return None
    body = [[title, metric.upper(), *cells] for (title, metric), cells in lines.items()]
    note = "The mean worst case of each class: a defence is as good as on the class it protects least."
    height = max(320, 100 + 22 * min(len(classes), 40))
    return Chart("Class by class", note, drawings, Grid(["setting", "metric", *classes], body, 2), height)


def _dots(setting: Setting, classes: Sequence[str], means: Sequence[float], place: int | None, before: int) -> Trace:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": words(setting.title),
        "x": list(means),
        "y": [words(name) for name in classes],
        "marker": {"color": colour(place), "symbol": symbol(place), "size": 9, "opacity": 0.85},
    } | waiting(before)


def by_option(settings: Sequence[Setting], option: str, title: str, asked: str, note: str) -> Chart | None:
    """MSE of one decoder against something that the attacker may have more of."""
    having = [(setting, place) for setting, place in placed(settings) if setting.runs[0].curves.get(option)]
    if not having:
        return None
    order = sorted({key for setting, _ in having for key in setting.runs[0].curves[option]}, key=_amount)
    traces: list[Trace] = []
    lines = []
    for setting, place in having:
        means = [mean([run.curves.get(option, {}).get(key, np.nan) for run in setting.runs]) for key in order]
        traces.append(curve(setting.title, order, means, place, **waiting(len(traces))))
        lines.append([setting.title, *map(small, means)])
    xaxis = axis(asked, type="category", categoryorder="array", categoryarray=order)
    layout = {"xaxis": xaxis, "yaxis": axis("MSE", rangemode="tozero")}
    return Chart(title, note, {"MSE": Drawing(traces, layout)}, Grid(["setting", *order], lines))


def _amount(key: str) -> float:
    """Where a point of a curve belongs: "all" is last."""
    try:
        return float(key)
    except ValueError:
        return float("inf")


def by_stage(settings: Sequence[Setting]) -> Chart | None:
    """One decoder before the bottleneck, after it, and on what is released."""
    having = [(setting, place) for setting, place in placed(settings) if setting.runs[0].curves.get("stages")]
    if not having:
        return None
    found = [stage for stage in STAGES if any(stage in setting.runs[0].curves["stages"] for setting, _ in having)]
    traces: list[Trace] = []
    lines = []
    for setting, place in having:
        means = [mean([run.curves.get("stages", {}).get(stage, np.nan) for run in setting.runs]) for stage in found]
        bars = {"type": "bar", "name": words(setting.title), "x": [STAGES[stage] for stage in found], "y": means}
        traces.append(bars | {"marker": {"color": colour(place)}} | waiting(len(traces)))
        lines.append([setting.title, *(small(value) if is_number(value) else MISSING for value in means)])
    note = "The same decoder at every stage; only what is released leaves the device."
    drawing = Drawing(traces, {"yaxis": axis("MSE"), "barmode": "group"})
    heading = ["setting", *(STAGES[stage] for stage in found)]
    return Chart("Where the protection comes from", note, {"MSE": drawing}, Grid(heading, lines))
