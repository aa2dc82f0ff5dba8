"""From results to charts: which numbers are drawn, and with which words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from attcem.report.charts import Line, Span, line_chart, span
from attcem.report.settings import Setting
from attcem.report.tradeoff import Point, ridges, scatter
from attcem.report.verdict import Kind, Verdict
from attcem.types import Result

MEASURES = (("accuracy", "accuracy", "val_accuracy"), ("loss", "loss", "val_loss"), ("penalty", "penalty", None))
SHARED = ("accuracy", "loss")
"""Measures on one scale across runs; penalties of different defences are not comparable."""


@dataclass(frozen=True)
class Curves:
    """The training curves of one run."""

    name: str
    charts: list[Markup]


def training_curves(settings: Sequence[Setting]) -> list[Curves]:
    """Accuracy, loss and penalty over epochs, one row of charts per run that has a history."""
    runs = [(setting, run) for setting in settings for run in setting.runs if run.history]
    spans = {
        title: span(row.get(key) for _, run in runs for row in run.history for key in keys if key)
        for title, *keys in MEASURES
        if title in SHARED
    }
    return [Curves(setting.label(run), _charts(run, spans)) for setting, run in runs]


def _charts(run: Result, spans: dict[str, Span | None]) -> list[Markup]:
    epochs = [row.get("epoch", i) for i, row in enumerate(run.history)]
    charts = []
    for title, key, held_out in MEASURES:
        style = "train" if held_out else "alone"
        lines = [Line("train", epochs, [row.get(key) for row in run.history], style)]
        if held_out:
            lines.append(Line("validation", epochs, [row.get(held_out) for row in run.history], "held-out"))
        if title in SHARED or any(y for _, y in lines[0].points()):
            charts.append(line_chart(title, lines, "epoch", spans.get(title)))
    return [chart for chart in charts if chart]


def tradeoff_chart(verdict: Verdict, settings: Sequence[Setting]) -> Markup:
    """All runs of one place: accuracy against worst-case MSE."""
    broken = {judgement.setting.name for judgement in verdict.judgements if judgement.kind is Kind.COLLAPSED}
    points = [
        Point(run.worst.mse, run.accuracy, setting.name if run is setting.runs[0] else "", _style(setting, broken))
        for setting in settings
        for run in setting.runs
    ]
    marks = {
        name: settings[0].baseline_mse(key)
        for name, key in (("mean image", "mean_image"), ("class mean", "class_mean"))
    }
    return scatter("What the task keeps against what is hidden", points, marks)


def _style(setting: Setting, broken: set[str]) -> str:
    if setting.undefended:
        return "undefended"
    return "collapsed" if setting.name in broken else "defended"


def spread_chart(settings: Sequence[Setting]) -> Markup:
    """How the worst-case MSE spreads over images, per setting."""
    rows = [(setting.name, worst_per_image(setting.runs[0])) for setting in settings]
    title = "Every attacked picture, by how badly it leaks"
    return ridges(title, rows, settings[0].baseline_mse("mean_image"))


def worst_per_image(run: Result) -> np.ndarray:
    """The lowest MSE that any attack reached, image by image; empty when it was not kept."""
    if "worst/mse" in run.per_image:
        return np.asarray(run.per_image["worst/mse"], dtype=float)
    kept = [np.asarray(run.per_image[f"{name}/mse"], float) for name in run.attacks if f"{name}/mse" in run.per_image]
    if not kept or len({len(values) for values in kept}) > 1:
        return np.empty(0)
    return np.fmin.reduce(kept)
