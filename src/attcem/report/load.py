"""Find the results that a user points at."""

from collections.abc import Iterable
from pathlib import Path

from attcem.types import Result


def load_results(paths: Iterable[str | Path] | str | Path) -> list[Result]:
    """Read every run in these folders: each is a run, or holds runs at any depth."""
    folders = [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    runs: dict[Path, Path] = {}
    for folder in folders:
        found = sorted(file.parent for file in folder.rglob("result.json"))
        if not found:
            what = "holds no result.json" if folder.is_dir() else "is not a folder"
            raise ValueError(f"{folder} {what}: make a run first, `attcem run experiments/<name>.yaml`")
        runs |= {run.resolve(): run for run in found}
    if not runs:
        raise ValueError("no folder given: type `attcem report runs/`, after `attcem run experiments/<name>.yaml`")
    return [Result.load(run) for run in runs.values()]
