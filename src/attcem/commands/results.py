"""Commands that read finished runs. Heavy imports wait inside, for help."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from attcem.commands.chosen import chosen
from attcem.configfile import UsageError
from attcem.terminal import tell

if TYPE_CHECKING:
    from attcem.types import Result


def explain(options: Namespace) -> None:
    """Draw what a run's defence looks at: attention, slots, gates, latent."""
    from attcem.explain import explain

    folder = Path(options.run)
    for found in explain(folder, **chosen(options, "images", "tsne", "device")):
        tell(f"{folder / 'explain' / found.file}   {found.title}")
    if not (folder / "result.json").exists():
        tell(f"a page needs an audit first: attcem audit {folder}")
    tell(f"page          attcem report {folder} --out report.html")


def report(options: Namespace) -> None:
    """One HTML page from one or more runs."""
    from attcem.compare import comparison_tables
    from attcem.language import language
    from attcem.report import render, write_report
    from attcem.report.live import live

    say = language(options.lang)
    if options.live:
        live(options.runs, options.port, lambda results: render(results, comparison_tables(results, say), say))
        return
    folder = Path(options.out).parent
    if not folder.is_dir():
        raise UsageError(f"--out {options.out}: there is no folder {folder}: make it, or choose another")
    with readable_runs(options.runs) as results:
        tell(f"open {write_report(results, options.out, comparison_tables(results, say), say)}")


def figures(options: Namespace) -> None:
    """Figures for a paper, from one or more runs."""
    from attcem.figures import draw_figures

    with readable_runs(options.runs) as results:
        written = draw_figures(results, options.out, options.format, options.at_accuracy)
        tell(*written.notes, *written.files)


def slides(options: Namespace) -> None:
    """Slides of a talk, from one or more runs."""
    from attcem.slides import write_slides

    with readable_runs(options.runs) as results:
        written = write_slides(results, options.out, options.lang, options.at_accuracy)
        tell(*written.notes, f"open {written.file}   ({written.slides} slides)")


def compare(options: Namespace) -> None:
    """Defences at matched accuracy, with intervals and tests."""
    from attcem.compare import FORMATS, compare

    with readable_runs(options.runs) as results:
        compared = compare(results, **chosen(options, "metric", "at_accuracy", "against"))
        tell(*FORMATS[options.format](compared).split("\n"))


def table(options: Namespace) -> None:
    """A line for each setting: accuracy, what leaks by every measure, and what it costs."""
    from attcem.compare.overview import FORMATS, overview

    with readable_runs(options.runs) as results:
        tell(*FORMATS[options.format](overview(results, options.columns)).split("\n"))


def check(options: Namespace) -> None:
    """Fail unless audits hold what is asked for: the gate of a build."""
    from attcem.check import Rules, check, junit, to_json
    from attcem.check.rules import MEASURES
    from attcem.files import write_atomically

    if missing := [path for path in options.runs if not Path(path).is_dir()]:
        raise UsageError(f"{missing[0]} is not a folder: give a run's, or an artifact's")
    try:
        rules = Rules(**chosen(options, *MEASURES, "suite"), allowed=tuple(options.allow_flags))
    except ValueError as error:
        raise UsageError(str(error)) from None
    verdicts = check(options.runs, rules)
    tell(*(line for verdict in verdicts for line in verdict.lines()))
    for path, content in ((options.junit, junit), (options.json, to_json)):
        if path:
            write_atomically(Path(path), content(verdicts).encode())
    failed = sum(not outcome.passed for verdict in verdicts for outcome in verdict.outcomes)
    if failed:
        raise ValueError(f"{failed} of {sum(len(verdict.outcomes) for verdict in verdicts)} rules fail")


@contextmanager
def readable_runs(paths: Sequence[str]) -> Iterator[list[Result]]:
    """The runs that can be read; the others are named at once, and fail the command once the rest is done."""
    from attcem.runs import read_runs

    results, unread = read_runs(paths)
    tell(*(f"attcem: {line}" for line in unread), file=sys.stderr)
    yield results
    if unread:
        raise ValueError(f"{len(unread)} of {len(results) + len(unread)} runs left out, for they cannot be read")
