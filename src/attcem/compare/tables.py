"""A comparison as a reader wants it: text, Markdown, LaTeX, CSV or JSON, or tables for a page."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from attcem import escaping, written
from attcem.compare.comparable import question
from attcem.compare.matched import Comparison, compare
from attcem.compare.rows import Row
from attcem.language import ENGLISH, Say, phrase
from attcem.metrics import METRICS
from attcem.runs.config import grouped
from attcem.runs.numbers import MISSING, map_numbers
from attcem.types import OVER_FREE, Line, Result, Table

DIGITS = {"mse": 5, "psnr": 2, "ssim": 4}
FOUND = phrase("defence"), phrase("strengths"), phrase("seeds"), phrase("accuracies")
TESTED = phrase("difference"), phrase("95 % interval"), phrase("p"), phrase("Wilcoxon p"), phrase("area")
BETTER = {False: phrase("higher hides more"), True: phrase("lower hides more")}
RELATIVE = {"mse": (phrase("MSE ratio"), ".3f", "1"), "psnr": (phrase("PSNR gain"), "+.2f", "0")}
"""Metric → its value over the mean image's: the column's name, its digits, and what is no better."""


def opening(comparison: Comparison, say: Say = ENGLISH) -> list[str]:
    score, tests = comparison.metric.upper(), sum(math.isfinite(row.p) for row in comparison.rows)
    better = BETTER[METRICS[comparison.metric].higher_is_better]
    lines = [
        *(say("flagged: {flag}", flag=say.again(flag)) for flag in comparison.flags),
        *(say.again(f"{name}: {drop.words}") for name, drop in comparison.drops.items()),
        say(
            "worst-case {score} at accuracy {accuracy:.4f}, {chosen}; {better}",
            score=score,
            accuracy=comparison.accuracy,
            chosen=say.again(comparison.chosen),
            better=say(better),
        ),
        say(
            "difference from {reference} over the seeds that both have; "
            "p, Wilcoxon p: Holm-corrected for {tests:comparison|comparisons}",
            reference=comparison.reference,
            tests=tests,
        ),
    ]
    if span := comparison.area_span:
        lines.append(
            say("area: mean {score} over the accuracies that all defences cover, {span}", score=score, span=span)
        )
    if relative := relative_to_free(comparison):
        name, _, nothing = relative
        free = f"{comparison.free:.{DIGITS[comparison.metric]}f}"
        lines.append(
            say(
                "{name}: over the mean image, a free guess with {free}; {nothing} is no better than that",
                name=say(name),
                free=free,
                nothing=nothing,
            )
        )
    return lines


def relative_to_free(comparison: Comparison) -> tuple[str, str, str] | None:
    return None if math.isnan(comparison.free) else RELATIVE.get(comparison.metric)


def cells(row: Row, comparison: Comparison, say: Say = ENGLISH) -> list[str]:
    metric = comparison.metric
    digits, relative = DIGITS.get(metric, 4), relative_to_free(comparison)
    interval = f"[{row.difference_low:+.{digits}f}, {row.difference_high:+.{digits}f}]"
    return [
        row.defence,
        str(row.strengths),
        str(row.seeds),
        row.spans or MISSING,
        _spread(row.mean, row.std, digits),
        *([_number(OVER_FREE[metric](row.mean, comparison.free), relative[1])] if relative else []),
        _number(row.difference, f"+.{digits}f"),
        MISSING if math.isnan(row.difference) else interval,
        chance(row.p),
        chance(row.wilcoxon_p),
        _spread(row.area, row.area_std, digits),
        "; ".join([*map(say.again, [row.verdict, *row.notes]), *[say("flagged")] * row.flagged]),
    ]


def _number(value: float, form: str) -> str:
    return MISSING if math.isnan(value) else format(value, form)


def _spread(mean: float, std: float, digits: int) -> str:
    return _number(mean, f".{digits}f") + ("" if math.isnan(std) else f" ± {std:.{digits}f}")


def chance(p: float) -> str:
    return "<0.001" if p < 0.001 else _number(p, ".3f")


def headings(comparison: Comparison) -> list[str]:
    relative = relative_to_free(comparison)
    return [*FOUND, comparison.metric.upper(), *([relative[0]] if relative else []), *TESTED, phrase("verdict")]


def _grid(comparison: Comparison) -> list[list[str]]:
    return [headings(comparison), *(cells(row, comparison) for row in comparison.rows)]


def as_text(comparison: Comparison) -> str:
    return written.as_text(opening(comparison), _grid(comparison))


def as_markdown(comparison: Comparison) -> str:
    return written.as_markdown(opening(comparison), _grid(comparison))


def as_latex(comparison: Comparison) -> str:
    return written.as_latex(opening(comparison), _grid(comparison))


def as_csv(comparison: Comparison) -> str:
    where = {"metric": comparison.metric, "accuracy": comparison.accuracy, "reference": comparison.reference}
    where["free"] = "" if math.isnan(comparison.free) else comparison.free
    records = [where | _without_nan(asdict(row)) | {"notes": "; ".join(row.notes)} for row in comparison.rows]
    return escaping.as_csv(records).rstrip("\n")


def as_json(comparison: Comparison) -> str:
    return json.dumps(_without_nan(asdict(comparison)), indent=1, ensure_ascii=False)


def _without_nan(tree: Any) -> Any:
    return map_numbers(tree, lambda value: None if math.isnan(value) else value)


FORMATS = {"text": as_text, "markdown": as_markdown, "latex": as_latex, "csv": as_csv, "json": as_json}


def comparison_tables(results: Sequence[Result], say: Say = ENGLISH, *, draws: int = 10_000) -> list[Table]:
    """One table per data set, network and audit; where its runs cannot be compared, the reason."""
    tables = []
    for places in grouped(range(len(results)), lambda place: question(results[place])):
        asked = question(results[places[0]])
        suite = asked.get("audit.suite", asked.get("attacks"))
        data, network = asked.get("data.name", "data"), asked.get("model.backbone", "model")
        title = say("{data} · {network}, suite {suite}", data=data, network=network, suite=suite)
        try:
            found = compare([results[place] for place in places], draws=draws)
        except ValueError as reason:
            tables.append(Table(title, (say.again(str(reason)),)))
            continue
        heading, rows = tuple(map(say, headings(found))), [tuple(cells(row, found, say)) for row in found.rows]
        runs = [tuple(places[i] for i in found.members[row.defence]) for row in found.rows]
        unflagged = opening(found, say)[len(found.flags) :]  # the page shows the flags itself
        tables.append(Table(title, tuple(unflagged), heading, tuple(map(Line, rows, runs))))
    return tables
