"""Every setting on a line of its own: what was found, mean ± standard deviation over seeds, and what it costs."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from attcem import escaping, written
from attcem.compare.rows import merge_flags
from attcem.naming import look_up
from attcem.runs import settings_of
from attcem.runs.numbers import MISSING, Show, count, mean, mean_and_spread, ratio, scientific, small, spread
from attcem.runs.settings import places
from attcem.types import Result, Scores

FREE = {"mean_image": "free: mean image", "class_mean": "free: class mean", "nearest_public": "free: nearest public"}


class Column(NamedTuple):
    """One figure of a line."""

    title: str
    show: Show
    of_run: Callable[[Result], float] | None = None
    of_scores: Callable[[Result, Scores], float] | None = None  # a free guess has it, too


def scored(metric: str) -> Callable[[Result, Scores], float]:
    return lambda run, scores: float(scores.named().get(metric, math.nan))


def spent(what: str, unit: float = 1.0) -> Callable[[Result], float]:
    return lambda run: run.cost.get(what, math.nan) / unit


COLUMNS = (
    Column("accuracy", ratio, of_run=lambda run: run.accuracy),
    Column("MSE", small, of_scores=scored("mse")),
    Column("MSE ratio", ratio, of_scores=lambda run, scores: run.over_free(scores, "mse")),
    Column("aligned MSE", small, of_scores=scored("aligned_mse")),
    Column("SSIM", ratio, of_scores=scored("ssim")),
    Column("recon_acc", ratio, of_scores=scored("recon_acc")),
    Column("found again", ratio, of_scores=scored("reid_top1")),
    Column("values", count, of_run=spent("values")),
    Column("bytes", count, of_run=spent("bytes")),
    Column("device, M", scientific, of_run=spent("multiplications_device", 1e6)),
    Column("step, ms", scientific, of_run=spent("step_ms")),
)


def read_column(column: Column, run: Result, scores: Scores | None = None) -> float:
    """Of the worst case, or of other scores; a cost belongs to no guess."""
    if column.of_scores is not None:
        return column.of_scores(run, scores or run.worst)
    return column.of_run(run) if column.of_run is not None and scores is None else math.nan


def in_short(values: Sequence[float], show: Show) -> str:
    return show(values[0]) if len(set(values)) == 1 else mean_and_spread(values, show)


class Overview(NamedTuple):
    """What a reader must know first, the headings, and a line for each setting and free guess."""

    opening: list[str]
    heading: list[str]
    lines: list[list[str]]
    records: list[dict[str, object]]


def overview(results: Sequence[Result], columns: Sequence[str] | None = None) -> Overview:
    """Of results that were audited alike; those of several data sets, networks or suites are refused.

    Every column that a result has, or the named ones in their order.
    """
    settings = sorted(settings_of(results), key=lambda s: (not s.undefended, s.family, -s.accuracy))
    if len(places(settings)) > 1 or len({setting.suite for setting in settings}) > 1:
        asked = "; ".join(sorted({f"{' · '.join(s.place)}, suite {s.suite}" for s in settings}))
        raise ValueError(f"these runs were not asked the same: {asked}: give those of one of them")
    known = {column.title: column for column in COLUMNS}
    wanted = COLUMNS if columns is None else [look_up("column", title, known) for title in columns]
    shown = [column for column in wanted if any(math.isfinite(read_column(column, run)) for run in results)]
    lines, records = [], []
    for setting in settings:
        values = {column.title: [read_column(column, run) for run in setting.runs] for column in shown}
        flags = len(merge_flags((setting.name, run.flags) for run in setting.runs))
        cells = [in_short(values[column.title], column.show) for column in shown]
        lines.append([setting.name, str(setting.seeds), *cells, str(flags)])
        figures = {t: mean(v) for t, v in values.items()} | {f"{t}, std": spread(v) for t, v in values.items()}
        records.append({"setting": setting.name, "seeds": setting.seeds, **figures, "flags": flags})
    for name, title in FREE.items():
        runs = [run for run in results if name in run.baselines]
        free = [mean([read_column(column, run, run.baselines[name]) for run in runs]) for column in shown]
        lines.append(
            [title, MISSING, *(column.show(value) for column, value in zip(shown, free, strict=True)), MISSING]
        )
    first = settings[0]
    asked = f"{' · '.join(first.place)}, suite {first.suite}, {results[0].worst.mse.n} test images"
    opening = [f"{asked}: worst case of each picture"]
    opening.append("mean ± standard deviation over seeds; flags: how many different ones, `attcem report` has them")
    return Overview(opening, ["setting", "seeds", *(column.title for column in shown), "flags"], lines, records)


def as_csv(found: Overview) -> str:
    return escaping.as_csv(found.records).rstrip("\n")


FORMATS: dict[str, Callable[[Overview], str]] = {
    "text": lambda found: written.as_text(found.opening, [found.heading, *found.lines]),
    "markdown": lambda found: written.as_markdown(found.opening, [found.heading, *found.lines]),
    "latex": lambda found: written.as_latex(found.opening, [found.heading, *found.lines]),
    "csv": as_csv,
}
