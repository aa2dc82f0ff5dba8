"""Whom the leak hits and when it grows: by picture, by class, by repeated sends, by the attacker's data, by stage."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from attcem.language import ENGLISH, Say, phrase
from attcem.report.charts import Chart, Drawing, Grid, Trace, axis, bars, coloured, curve, points, words
from attcem.report.tables import METRICS
from attcem.runs import Setting
from attcem.runs.leak import worst_per_image
from attcem.runs.numbers import amount, is_number, mean
from attcem.types import Result

QUANTILES = np.linspace(0, 100, 51)
QUOTED = (1, 5, 25, 50, 75, 95, 99)  # percentiles that stand in the table
VISIBLE = 8  # more curves than this wait in the legend to be asked for
STAGES = {
    "before_bottleneck": phrase("before the bottleneck"),
    "clean": phrase("clean latent"),
    "released": phrase("released"),
}

Drawn = tuple[Trace, list[float]] | None
"""What is drawn of a setting, and the numbers behind it; nothing where it was not measured."""


def charts(settings: Sequence[Setting], say: Say = ENGLISH) -> list[Chart]:
    drawn = (
        by_picture(settings, say),
        by_class(settings, say),
        by_option(
            settings, "repeats", say("Sent again and again"), say("sends of each picture"),
            say("A device that sends a picture several times averages its own noise away."), say,
        ),
        by_option(
            settings, "pairs", say("With more pictures of their own"), say("public pictures the attacker owns"),
            say("The same attack, trained on fewer public pictures."), say,
        ),
        by_stage(settings, say),
    )  # fmt: skip
    return [chart for chart in drawn if chart is not None]


def _draw(
    settings: Sequence[Setting],
    draw: Callable[[Setting, int | None, str], Drawn],
    steps: Iterable[str],
    layout: dict[str, Any],
    say: Say,
    metrics: Sequence[str] = ("mse", "ssim"),
    leak: tuple[str, str] = ("yaxis", ""),
) -> tuple[dict[str, Drawing], Grid]:
    """A drawing per metric that some setting has, and the table behind them; `leak` is the metric's axis and title."""
    drawings, lines, several = {}, [], len(metrics) > 1
    for metric, name in ((metric, metric.upper()) for metric in metrics):
        traces: list[Trace] = []
        for setting, place in coloured(settings):
            if drawn := draw(setting, place, metric):
                hidden = {"visible": "legendonly"} if len(traces) >= VISIBLE else {}
                traces.append(drawn[0] | hidden | {"name": words(say.again(setting.name))})
                lines.append([say.again(setting.name), *[name] * several, *map(METRICS[metric], drawn[1])])
        if traces:
            drawings[name] = Drawing(traces, layout | {leak[0]: axis(leak[1] + name, rangemode="tozero")})
    return drawings, Grid([say("setting"), *[say("metric")] * several, *steps], lines, 1 + several)


def by_picture(settings: Sequence[Setting], say: Say = ENGLISH) -> Chart | None:
    """The worst case of every attacked picture, from the one that leaks most to the one that leaks least."""

    def draw(setting: Setting, place: int | None, metric: str) -> Drawn:
        xs, ys = _quantiles(setting.runs[0], metric)
        if not len(xs):
            return None
        return curve(setting.name, xs, ys, place, mode="lines"), np.interp(QUOTED, xs, ys).tolist()

    across = axis(say("share of pictures, most leaking first"), ticksuffix=" %", range=[0, 100])
    drawings, table = _draw(settings, draw, [f"{quantile} %" for quantile in QUOTED], {"xaxis": across}, say)
    note = say("A good mean can hide a few pictures that leak entirely: they stand at the left end.")
    return Chart(say("Picture by picture"), note, drawings, table) if drawings else None


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


def by_class(settings: Sequence[Setting], say: Say = ENGLISH) -> Chart | None:
    classes = list(dict.fromkeys(name for setting in settings for run in setting.runs for name in run.per_class))

    def draw(setting: Setting, place: int | None, metric: str) -> Drawn:
        means = [mean([run.per_class.get(name, {}).get(metric, np.nan) for run in setting.runs]) for name in classes]
        look = {"marker": {"size": 9, "opacity": 0.85}}
        return (points(setting.name, means, labels, place, **look), means) if any(map(is_number, means)) else None

    labels = [words(name) for name in classes]
    layout = {"yaxis": {"type": "category", "autorange": "reversed", "automargin": True}, "hovermode": "closest"}
    drawings, table = _draw(settings, draw, classes, layout, say, leak=("xaxis", say("worst-case ")))
    note = say("The mean worst case of each class: a defence is as good as on the class it protects least.")
    height = max(320, 100 + 22 * min(len(classes), 40))
    return Chart(say("Class by class"), note, drawings, table, height) if drawings else None


def by_option(
    settings: Sequence[Setting], option: str, title: str, asked: str, note: str, say: Say = ENGLISH
) -> Chart | None:
    """MSE of one decoder against something that the attacker may have more of."""
    steps = sorted({step for setting in settings for step in setting.runs[0].curves.get(option, {})}, key=amount)
    across = axis(asked, type="category", categoryorder="array", categoryarray=steps)
    draw = partial(_at_each_step, option=option, steps=dict(zip(steps, steps, strict=True)), trace=curve)
    drawings, table = _draw(settings, draw, steps, {"xaxis": across}, say, ["mse"])
    return Chart(title, note, drawings, table) if drawings else None


def by_stage(settings: Sequence[Setting], say: Say = ENGLISH) -> Chart | None:
    known = {stage for setting in settings for stage in setting.runs[0].curves.get("stages", {})}
    steps = {stage: say(text) for stage, text in STAGES.items() if stage in known}
    draw = partial(_at_each_step, option="stages", steps=steps, trace=bars)
    drawings, table = _draw(settings, draw, steps.values(), {"barmode": "group"}, say, ["mse"])
    note = say("The same decoder at every stage; only what is released leaves the device.")
    return Chart(say("Where the protection comes from"), note, drawings, table) if drawings else None


def _at_each_step(
    setting: Setting, place: int | None, metric: str, option: str, steps: Mapping[str, str], trace: Callable[..., Trace]
) -> Drawn:
    if not setting.runs[0].curves.get(option):
        return None
    means = [mean([run.curves.get(option, {}).get(step, np.nan) for run in setting.runs]) for step in steps]
    return trace(setting.name, list(steps.values()), means, place), means
