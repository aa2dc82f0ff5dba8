"""The tables: one row per run with its baselines, one per attack, and one per client."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from attcem.language import ENGLISH, Say, phrase
from attcem.report.charts import Grid
from attcem.runs.leak import best_attack
from attcem.runs.numbers import MISSING, Show, count, decibel, gain, is_number, mean, percent, plus_minus, ratio, small
from attcem.runs.settings import Place, Setting, places
from attcem.types import OVER_FREE, Result, Scores

BASELINES = {
    "mean_image": phrase("mean image"),
    "class_mean": phrase("class mean"),
    "nearest_public": phrase("nearest public image"),
}


class Column(NamedTuple):
    """One number of a row: how it is called, which way is good, how it is read and shown."""

    title: str
    hint: str
    show: Show
    value: Callable[[Result, Scores], float]
    of_scores: bool = True  # whether it is a property of reconstructions, so that a baseline has it too
    derived: bool = False  # from another column and the mean image


COLUMNS = (
    Column(phrase("accuracy"), phrase("↑ better"), ratio, lambda run, scores: run.accuracy, of_scores=False),
    Column(phrase("MSE"), phrase("↑ hides more"), small, lambda run, scores: scores.mse),
    Column(
        phrase("MSE ratio"),
        phrase("1: the mean image"),
        ratio,
        lambda run, scores: run.over_free(scores, "mse"),
        derived=True,
    ),
    Column(phrase("PSNR"), phrase("↓ hides more"), decibel, lambda run, scores: scores.psnr),
    Column(
        phrase("PSNR gain"),
        phrase("0: the mean image"),
        gain,
        lambda run, scores: run.over_free(scores, "psnr"),
        derived=True,
    ),
    Column(phrase("SSIM"), phrase("↓ hides more"), ratio, lambda run, scores: scores.ssim),
    Column(phrase("recon_acc"), phrase("↓ hides more"), ratio, lambda run, scores: scores.recon_acc),
    Column(phrase("reid_top1"), phrase("↓ hides more"), ratio, lambda run, scores: scores.reid_top1),
    Column(
        phrase("bytes"),
        phrase("on the wire"),
        count,
        lambda run, scores: run.cost.get("bytes", math.nan),
        of_scores=False,
    ),
)
LEAKS = {column.title: column for column in COLUMNS if column.of_scores}
METRICS = {title.lower(): column.show for title, column in LEAKS.items() if not column.derived}
SHARES = ("recon_acc", "reid_top1")  # metrics that are 0 or 1 per image: their percentiles say nothing


class Row(NamedTuple):
    """One row of the table of runs, ready to print."""

    name: str
    kind: str
    place: Place
    cells: list[tuple[str, str]]  # each number and, below it, its deviation over seeds
    seed: str = MISSING
    flags: int | None = None
    anchor: str = ""  # where on the page its configuration stands


def run_table(settings: Sequence[Setting], anchors: Mapping[int, str] | None = None) -> list[list[Row]]:
    blocks = []
    for place, members in places(settings).items():
        rows: list[Row] = []
        for setting in members:
            for run in setting.runs:
                cells = [(column.show(column.value(run, run.worst)), "") for column in COLUMNS]
                anchor = (anchors or {}).get(id(run), "")
                rows.append(Row(setting.name, "run", place, cells, str(run.seed), len(run.flags), anchor))
            if setting.seeds > 1:
                values = [(column, [column.value(run, run.worst) for run in setting.runs]) for column in COLUMNS]
                cells = [(column.show(mean(found)), plus_minus(found, column.show)) for column, found in values]
                rows.append(Row(f"{setting.name}, mean ± std", "mean", place, cells, f"{setting.seeds} seeds"))
        for name, title in BASELINES.items():
            means = (mean_baseline(column, name, members) if column.of_scores else None for column in COLUMNS)
            cells = [(column.show(value), "") for column, value in zip(COLUMNS, means, strict=True)]
            rows.append(Row(title, "baseline", place, cells))
        blocks.append(rows)
    return blocks


def mean_baseline(column: Column, name: str, settings: Sequence[Setting]) -> float:
    """What a reconstruction that needs no latent at all scores: its mean over the runs that it is compared with."""
    runs = [run for setting in settings for run in setting.runs if name in run.baselines]
    return mean([column.value(run, run.baselines[name]) for run in runs])


def attack_table(run: Result) -> Iterator[tuple[str, str, list[tuple[str, str]], str]]:
    """Name, kind, metrics as (mean, p05 – p95) and n of every attack, the worst case over them, and the baselines."""
    best = best_attack(run, run.attacks)
    rows = [(name, "best" if name == best else "attack", scores) for name, scores in run.attacks.items()]
    rows.append(("worst case per image", "worst", run.worst))
    rows += [(BASELINES.get(name, name), "baseline", scores) for name, scores in run.baselines.items()]
    for title, kind, scores in rows:
        values = scores.named()
        cells = [
            (show(values[name]), "" if name in SHARES else f"{show(values[name].p05)} – {show(values[name].p95)}")
            for name, show in METRICS.items()
        ]
        yield title, kind, cells, " / ".join(dict.fromkeys(count(value.n) for value in values.values()))


NAMED = 3  # so many of a client's classes are named, the largest first


def client_table(run: Result, say: Say = ENGLISH) -> Grid:
    rows = [_client_row(client, say) for client in run.clients]
    return Grid([say(title) for title in rows[0]], [list(row.values()) for row in rows], words=2)


def _client_row(client: Mapping[str, Any], say: Say) -> dict[str, str]:
    """Column → cell; scores, and what they are compared with, are on the client's own mix of classes."""
    worst, free, images = client["worst"], client["mean_image_mse"], client["images"] or math.nan
    mse = worst.get("mse")
    over_free = OVER_FREE["mse"](mse, free) if is_number(mse) and is_number(free) else None
    largest = sorted(client["classes"].items(), key=lambda item: -item[1])[:NAMED]
    return {
        phrase("client"): say("client {number}", number=client["client"]),
        phrase("mostly"): ", ".join(f"{name} {percent(owned / images)}" for name, owned in largest) or MISSING,
        phrase("images"): count(client["images"]),
        "accuracy": ratio(client["accuracy"]),
        "MSE": small(mse),
        "mean image": small(free),
        "MSE ratio": ratio(over_free),
        "PSNR": decibel(worst.get("psnr")),
        "SSIM": ratio(worst.get("ssim")),
        "recon_acc": ratio(worst.get("recon_acc")),
        "reid_top1": ratio(worst.get("reid_top1")),
        phrase("classes attacked"): percent(client["covered"]),
    }
