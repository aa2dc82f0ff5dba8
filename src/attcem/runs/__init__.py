"""Results: read once, grouped by settings, seeds and strength, and named; compare, report and figures stand on it."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from attcem.runs.curves import Curve, curves_of
from attcem.runs.settings import Setting, find_twins, settings_of, with_twins
from attcem.types import Result

__all__ = ["Curve", "Runs", "Setting", "curves_of", "find_twins", "read_runs", "settings_of", "with_twins"]


class Runs(NamedTuple):
    """What lies in some folders: results, and a line for each run that cannot be read."""

    results: list[Result]
    unread: list[str]


def read_runs(paths: Iterable[str | Path]) -> Runs:
    """Read every run in these folders, each once: a folder is a run, or holds at least one, at any depth."""
    runs: dict[Path, Path] = {}
    for folder in map(Path, paths):
        found = sorted(file.parent for file in folder.rglob("result.json"))
        if not found:
            what = "holds no result.json" if folder.is_dir() else "is not a folder"
            raise ValueError(f"{folder} {what}: make a run first, `attcem run experiments/<name>.yaml`")
        runs |= {run.resolve(): run for run in found}
    if not runs:
        raise ValueError("no folder given: make a run first, `attcem run experiments/<name>.yaml`")
    results, unread = [], []
    for run in runs.values():
        try:
            results.append(Result.load(run))
        except (ValueError, OSError) as error:
            unread.append(f"{run} cannot be read: {' '.join(str(error).split())}")
    if not results:
        raise ValueError("; ".join(unread))
    return Runs(results, unread)
