"""The tables: one row per run with its baselines, and one row per attack."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from attcem.runs.leak import best_attack, recovered_share
from attcem.runs.numbers import MISSING, count, decibel, is_number, mean, percent, ratio, small, spread
from attcem.runs.settings import Place, Setting, places
from attcem.types import Result, Scores

BASELINES = {"mean_image": "mean image", "class_mean": "class mean", "nearest_public": "nearest public image"}


@dataclass(frozen=True)
class Column:
    """One number of a row: how it is called, which way is good, how it is read and shown."""

    title: str
    hint: str
    show: Callable[[float | None], str]
    value: Callable[[Result, Scores], float]
    of_scores: bool = True
    """Whether it is a property of reconstructions, so that a baseline has it too."""


COLUMNS = (
    Column("accuracy", "↑ better", ratio, lambda run, scores: run.accuracy, of_scores=False),
    Column("MSE", "↑ hides more", small, lambda run, scores: scores.mse),
    Column("PSNR", "↓ hides more", decibel, lambda run, scores: scores.psnr),
    Column("SSIM", "↓ hides more", ratio, lambda run, scores: scores.ssim),
    Column("recovered share", "↓ hides more", percent, lambda run, scores: recovered_share(scores, run)),
    Column("recon_acc", "↓ hides more", ratio, lambda run, scores: scores.recon_acc),
    Column("reid_top1", "↓ hides more", ratio, lambda run, scores: scores.reid_top1),
    Column("bytes", "on the wire", count, lambda run, scores: run.cost.get("bytes", math.nan), of_scores=False),
)
LEAKS = {column.title: column for column in COLUMNS if column.of_scores}
METRICS = {title.lower(): column.show for title, column in LEAKS.items() if title != "recovered share"}
SHARES = ("recon_acc", "reid_top1")
"""Metrics that are 0 or 1 per image: their percentiles say nothing."""


@dataclass(frozen=True)
class Row:
    """One row of the table of runs, ready to print."""

    name: str
    kind: str
    place: Place
    cells: list[tuple[str, str]]
    """Each number and, below it, its deviation over seeds."""
    seed: str = MISSING
    flags: int | None = None
    anchor: str = ""
    """Where on the page its configuration stands."""


def run_table(settings: Sequence[Setting], anchors: Mapping[int, str] | None = None) -> list[list[Row]]:
    """One block per data set and backbone: its runs, means over seeds, and baselines."""
    return [_block(place, members, anchors or {}) for place, members in places(settings).items()]


def _block(place: Place, settings: Sequence[Setting], anchors: Mapping[int, str]) -> list[Row]:
    rows = []
    for setting in settings:
        for run in setting.runs:
            cells = [(column.show(column.value(run, run.worst)), "") for column in COLUMNS]
            anchor = anchors.get(id(run), "")
            rows.append(Row(setting.name, "run", place, cells, str(run.seed), len(run.flags), anchor))
        if setting.seeds > 1:
            cells = [_over_seeds(column, setting) for column in COLUMNS]
            rows.append(Row(f"{setting.name}, mean ± std", "mean", place, cells, f"{setting.seeds} seeds"))
    for name, title in BASELINES.items():
        means = [mean_baseline(column, name, settings) if column.of_scores else None for column in COLUMNS]
        free = [(column.show(value), "") for column, value in zip(COLUMNS, means, strict=True)]
        rows.append(Row(title, "baseline", place, free))
    return rows


def _over_seeds(column: Column, setting: Setting) -> tuple[str, str]:
    values = [column.value(run, run.worst) for run in setting.runs]
    deviation = spread(values)
    return column.show(mean(values)), f"± {column.show(deviation)}" if is_number(deviation) else ""


def mean_baseline(column: Column, name: str, settings: Sequence[Setting]) -> float:
    """What a reconstruction that needs no latent at all scores: its mean over the runs that it is compared with."""
    runs = [run for setting in settings for run in setting.runs if name in run.baselines]
    return mean([column.value(run, run.baselines[name]) for run in runs])


@dataclass(frozen=True)
class AttackRow:
    """One attack in the table of a run: its metrics as (mean, p05 – p95)."""

    name: str
    kind: str
    cells: list[tuple[str, str]]
    n: str


def attack_table(run: Result) -> list[AttackRow]:
    """Every attack, the worst case over them, and the baselines."""
    best = best_attack(run, run.attacks)
    rows = [_attack_row(name, "best" if name == best else "attack", scores) for name, scores in run.attacks.items()]
    rows.append(_attack_row("worst case per image", "worst", run.worst))
    return rows + [_attack_row(BASELINES.get(name, name), "baseline", it) for name, it in run.baselines.items()]


def _attack_row(name: str, kind: str, scores: Scores) -> AttackRow:
    values = scores.named()
    cells = [
        (show(values[metric]), "" if metric in SHARES else f"{show(values[metric].p05)} – {show(values[metric].p95)}")
        for metric, show in METRICS.items()
    ]
    return AttackRow(name, kind, cells, " / ".join(dict.fromkeys(count(value.n) for value in values.values())))
