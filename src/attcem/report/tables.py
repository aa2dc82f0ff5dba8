"""The tables: one row per run with its baselines, and one row per attack."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from attcem.report.numbers import MISSING, count, decibel, is_number, mean, percent, ratio, small, spread
from attcem.report.settings import Setting, places, recovered_share
from attcem.types import Result, Scores, Summary

BASELINES = {
    "mean_image": "mean image",
    "class_mean": "class mean",
    "nearest_public": "nearest public image",
}


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


@dataclass(frozen=True)
class Row:
    """One row of the table of runs, ready to print."""

    name: str
    kind: str
    place: tuple[str, str]
    cells: list[tuple[str, str]]
    """Each number and, below it, its deviation over seeds."""
    seed: str = MISSING
    flags: int | None = None
    anchor: str = ""
    """Where on the page its configuration stands."""


def run_table(settings: Sequence[Setting], anchors: Mapping[int, str] | None = None) -> list[list[Row]]:
    """One block per data set and backbone: its runs, means over seeds, and baselines."""
    return [_block(members, anchors or {}) for members in places(settings).values()]


def _block(settings: Sequence[Setting], anchors: Mapping[int, str]) -> list[Row]:
    rows: list[Row] = []
    for setting in settings:
        rows += [_run_row(setting, run, anchors.get(id(run), "")) for run in setting.runs]
        rows += [_mean_row(setting)] if setting.seeds > 1 else []
    runs = [run for setting in settings for run in setting.runs]
    return rows + [_baseline_row(name, settings[0].place, runs) for name in BASELINES]


def _run_row(setting: Setting, run: Result, anchor: str) -> Row:
    cells = [(column.show(column.value(run, run.worst)), "") for column in COLUMNS]
    return Row(setting.title, "run", setting.place, cells, str(run.seed), len(run.flags), anchor)


def _mean_row(setting: Setting) -> Row:
    cells = []
    for column in COLUMNS:
        values = [column.value(run, run.worst) for run in setting.runs]
        deviation = spread(values)
        cells.append((column.show(mean(values)), f"± {column.show(deviation)}" if is_number(deviation) else ""))
    return Row(f"{setting.title}, mean ± std", "mean", setting.place, cells, f"{setting.seeds} seeds")


def _baseline_row(name: str, place: tuple[str, str], runs: Sequence[Result]) -> Row:
    """A reconstruction that needs no latent at all; its mean over the runs that it is compared with."""
    having = [run for run in runs if name in run.baselines]
    cells = [
        (
            column.show(mean([column.value(run, run.baselines[name]) for run in having]))
            if column.of_scores
            else MISSING,
            "",
        )
        for column in COLUMNS
    ]
    return Row(BASELINES[name], "baseline", place, cells)


@dataclass(frozen=True)
class AttackRow:
    """One attack in the table of a run: its metrics as (mean, p05 – p95)."""

    name: str
    kind: str
    cells: list[tuple[str, str]]
    n: str


METRICS: dict[str, Callable[[float | None], str]] = {
    "mse": small,
    "psnr": decibel,
    "ssim": ratio,
    "recon_acc": ratio,
    "reid_top1": ratio,
}
SHARES = ("recon_acc", "reid_top1")
"""Metrics that are 0 or 1 per image: their percentiles say nothing."""


def attack_table(run: Result) -> list[AttackRow]:
    """Every attack, the worst case over them, and the baselines."""
    best = best_attack(run, run.attacks)
    rows = [_attack_row(name, "best" if name == best else "attack", scores) for name, scores in run.attacks.items()]
    rows.append(_attack_row("worst case per image", "worst", run.worst))
    return rows + [_attack_row(BASELINES.get(name, name), "baseline", it) for name, it in run.baselines.items()]


def _attack_row(name: str, kind: str, scores: Scores) -> AttackRow:
    values = scores.named()
    cells = [
        (show(values[metric]), "" if metric in SHARES else _range(values[metric], show))
        for metric, show in METRICS.items()
    ]
    return AttackRow(name, kind, cells, " / ".join(dict.fromkeys(count(value.n) for value in values.values())))


def _range(value: Summary, show: Callable[[float | None], str]) -> str:
    return f"{show(value.p05)} – {show(value.p95)}"


def best_attack(run: Result, among: Sequence[str] | dict[str, Scores]) -> str | None:
    """The attack with the lowest mean MSE, of those named that attacked every picture, sent once; NaN never wins."""
    whole = [name for name in run.attacks if name in among and name not in run.repeated]
    measured = [name for name in whole if run.attacks[name].mse >= 0 and run.attacks[name].mse.n == run.worst.mse.n]
    return min(measured, key=lambda name: run.attacks[name].mse, default=None)
