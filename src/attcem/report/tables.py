"""The tables: one row per run with its baselines, one per attack, and one per client."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attcem.report.charts import Grid
from attcem.runs.leak import best_attack, recovered_share
from attcem.runs.numbers import MISSING, Show, count, decibel, is_number, mean, percent, plus_minus, ratio, small
from attcem.runs.settings import Place, Setting, places
from attcem.types import Result, Scores

BASELINES = {"mean_image": "mean image", "class_mean": "class mean", "nearest_public": "nearest public image"}


@dataclass(frozen=True)
class Column:
    """One number of a row: how it is called, which way is good, how it is read and shown."""

    title: str
    hint: str
    show: Show
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
    return column.show(mean(values)), plus_minus(values, column.show)


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


NAMED = 3
"""So many of a client's classes are named, the largest first."""

Client = Mapping[str, Any]


def recovered(client: Client) -> float | None:
    """1 − MSE / MSE of the mean image, at least 0, both on the client's own mix of classes."""
    mse, free = client["worst"].get("mse"), client["mean_image_mse"]
    return max(0.0, 1 - mse / free) if is_number(mse) and is_number(free) and free > 0 else None


def largest_classes(client: Client) -> str:
    """The classes it has most of, with their shares."""
    largest = sorted(client["classes"].items(), key=lambda item: -item[1])[:NAMED]
    images = client["images"] or float("nan")
    return ", ".join(f"{name} {percent(owned / images)}" for name, owned in largest) or MISSING


CLIENT_COLUMNS: Mapping[str, Callable[[Client], str]] = {
    "client": lambda client: f"client {client['client']}",
    "mostly": largest_classes,
    "images": lambda client: count(client["images"]),
    "accuracy": lambda client: ratio(client["accuracy"]),
    "MSE": lambda client: small(client["worst"].get("mse")),
    "mean image": lambda client: small(client["mean_image_mse"]),
    "recovered share": lambda client: percent(recovered(client)),
    "PSNR": lambda client: decibel(client["worst"].get("psnr")),
    "SSIM": lambda client: ratio(client["worst"].get("ssim")),
    "recon_acc": lambda client: ratio(client["worst"].get("recon_acc")),
    "reid_top1": lambda client: ratio(client["worst"].get("reid_top1")),
    "classes attacked": lambda client: percent(client["covered"]),
}


def client_table(run: Result) -> Grid:
    """One line per client, in their order."""
    lines = [[show(client) for show in CLIENT_COLUMNS.values()] for client in run.clients]
    return Grid(list(CLIENT_COLUMNS), lines, words=2)
