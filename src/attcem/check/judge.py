"""The gate itself: audits are read, grouped into settings, and each rule is held against each setting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attcem.check.confidence import mean_bound
from attcem.check.rules import MEASURES, Measure, Rules
from attcem.reading.plain import one_line
from attcem.runs import Setting, settings_of
from attcem.ship.artifact import MANIFEST, read_artifact, read_audit
from attcem.types import Result

MARKS = (MANIFEST, "result.json", "config.yaml")


@dataclass(frozen=True)
class Outcome:
    """What one rule says; the numbers are those of a threshold, and nothing where there is none."""

    rule: str
    passed: bool
    text: str
    value: float | None = None
    bound: float | None = None
    threshold: float | None = None

    def __str__(self) -> str:
        return f"{'PASS' if self.passed else 'FAIL'}  {self.rule} {self.text}"


@dataclass(frozen=True)
class Verdict:
    """Every rule on one setting."""

    name: str
    outcomes: tuple[Outcome, ...]

    @property
    def passed(self) -> bool:
        return all(outcome.passed for outcome in self.outcomes)

    def lines(self) -> list[str]:
        return [self.name, *map(str, self.outcomes)]


def check(paths: Iterable[str | Path], rules: Rules) -> list[Verdict]:
    """Hold the rules against every run and artifact in these folders; seeds of one setting are judged together."""
    results, verdicts = [], []
    for folder in dict.fromkeys(folder for path in paths for folder in audited_folders(Path(path))):
        try:
            results.append(read(folder))
        except (ValueError, OSError) as error:
            verdicts.append(Verdict(str(folder), (Outcome("audit", False, one_line(error)),)))
    return verdicts + [judge(setting, rules) for setting in settings_of(results)]


def audited_folders(path: Path) -> list[Path]:
    """The runs and artifacts in a folder, those without an audit too; the folder itself where there is none."""
    marked = {file.parent for mark in MARKS for file in path.rglob(mark)}
    artifacts = [folder for folder in marked if (folder / MANIFEST).exists()]
    inner = {folder for folder in marked for artifact in artifacts if artifact in folder.parents}
    return sorted(marked - inner) or [path]


def read(folder: Path) -> Result:
    """The audit of a run or an artifact."""
    if not (folder / MANIFEST).exists():
        return Result.load(folder)
    audit = read_audit(folder, read_artifact(folder))
    audit.folder = folder
    return audit


def judge(setting: Setting, rules: Rules) -> Verdict:
    """All rules on the runs of one setting."""
    runs, seeds = setting.runs, setting.seeds
    folders = ", ".join(str(run.folder) for run in runs)
    name = f"{folders}: {setting.name}, {seeds} seed{'s' if seeds > 1 else ''}, suite {runs[0].suite or 'unknown'}"
    outcomes = [judge_flags(runs, rules)]
    if seeds < len(runs):
        outcomes.append(Outcome("seeds", False, f"{len(runs)} runs have {seeds} seeds: name one run for each seed"))
    if rules.suite is not None:
        right = all(run.suite == rules.suite or run.suite.startswith(f"{rules.suite}-") for run in runs)
        outcomes.append(Outcome("suite", right, f"{runs[0].suite or 'unknown'}, asked for {rules.suite}"))
    for rule, threshold in rules.thresholds.items():
        outcomes.append(judge_threshold(runs, MEASURES[rule], threshold))
    return Verdict(name, tuple(outcomes))


def judge_flags(runs: Sequence[Result], rules: Rules) -> Outcome:
    """Each run is held against what is allowed by itself; whatever is allowed is still said."""
    wrong = list(dict.fromkeys(flag for run in runs for flag in rules.objectionable(run.flags)))
    every = list(dict.fromkeys(flag for run in runs for flag in run.flags))
    if wrong:
        return Outcome("flags", False, f"{len(wrong)}: {'; '.join(wrong)}")
    return Outcome("flags", True, f"{len(every)}, allowed: {'; '.join(every)}" if every else "none")


def judge_threshold(runs: Sequence[Result], measure: Measure, threshold: float) -> Outcome:
    """The mean over seeds, and the worst of its bounds: over the images of each run, and over seeds if there are any.

    Seeds are never pooled as if they were images: every run must hold by itself, and so must the spread of the seeds.
    """
    side = measure.side
    try:
        measured = [measure.of(run, side) for run in runs]
    except ValueError as error:
        return Outcome(measure.name, False, one_line(error), threshold=threshold)
    values, bounds = (list(column) for column in zip(*measured, strict=True))
    if len(runs) > 1:
        bounds.append(mean_bound(np.array(values), side))
    bound = min(side * max(side * each for each in bounds), measure.most)
    text = (
        f"{np.mean(values):.4g} ({'at most' if side > 0 else 'at least'} {bound:.4g} with 95 % confidence), "
        f"{'allowed' if side > 0 else 'asked for'} {threshold:g}"
    )
    return Outcome(measure.name, side * bound <= side * threshold, text, float(np.mean(values)), bound, threshold)
