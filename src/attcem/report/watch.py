"""Watch folders of runs: read again only what changed, say how far the others are, and name what cannot be read."""

import csv
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from attcem.reading.plain import MEGABYTE, read_content
from attcem.reading.settings import read_yaml
from attcem.runs.numbers import is_number
from attcem.types import Result

CONFIG, HISTORY, RESULT = "config.yaml", "history.csv", "result.json"
Render = Callable[[Sequence[Result]], str]


class Watch:
    """What some folders hold right now: a page of the finished runs, and a line for each of the others."""

    def __init__(self, folders: Iterable[str | Path], render: Render) -> None:
        self.folders = [Path(folder) for folder in folders]
        for folder in self.folders:
            if not folder.is_dir():
                raise ValueError(f"{folder} is not a folder: start a run first, `attcem run experiments/<name>.yaml`")
        self.render = render
        self.lock = Lock()
        self.read: dict[Path, tuple[tuple[int, ...], Result]] = {}
        """Run → what changes whenever its result, or what explains it, is written again, and the result."""
        self.failed: list[str] = []
        self.version, self.page = "", ""

    def look(self) -> tuple[str, str, list[str]]:
        """The page's version, the page, and a line for every run that is not on it."""
        with self.lock:
            lines = [line for line in map(self.line, self.runs()) if line]
            stamps = sorted((str(run), stamp) for run, (stamp, _) in self.read.items())
            version = hashlib.sha256(repr(stamps).encode()).hexdigest()[:16]
            if version != self.version:
                self.version, self.page = version, self.drawn()
            return self.version, self.page, lines + self.failed

    def runs(self) -> list[Path]:
        """Every run's folder, once; forgets results whose folder is gone."""
        walks = (os.walk(folder) for folder in self.folders)  # which does not mind a folder that goes away meanwhile
        here = (Path(folder) for walk in walks for folder, _, files in walk if {CONFIG, RESULT} & set(files))
        found = {run.resolve(): run for run in here}
        self.read = {run: kept for run, kept in self.read.items() if run in found.values()}
        return sorted(found.values())

    def line(self, run: Path) -> str:
        """Read a result, if it is new; a line for a run that has none, or one that cannot be read."""
        try:
            if not (run / RESULT).exists():
                self.read.pop(run, None)
                return f"{run}: {how_far(run)}"
            stats = [f.stat() for f in (run / RESULT, run / "explain" / "entries.json") if f.exists()]
            stamp = tuple(number for stat in stats for number in (stat.st_mtime_ns, stat.st_size, stat.st_ino))
            if run not in self.read or self.read[run][0] != stamp:
                self.read.pop(run, None)
                self.read[run] = stamp, Result.load(run)
        except Exception as error:  # a file can be broken in any way, and the next look may find it whole
            return f"{run}: cannot be read: {reason(error)}"
        return ""

    def drawn(self) -> str:
        """The page of all results; one that cannot be drawn is left out and named."""
        self.failed = []
        results = {run: result for run, (_, result) in sorted(self.read.items())}
        try:
            return self.render(list(results.values())) if results else ""
        except Exception:
            drawable = []
            for run, result in results.items():
                try:
                    self.render([result])
                    drawable.append(result)
                except Exception as error:
                    self.failed.append(f"{run}: cannot be shown: {reason(error)}")
            return self.render(drawable) if drawable else ""


def reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def how_far(folder: Path) -> str:
    """How far a run without a result is, in words; a ValueError or OSError if its files cannot be read."""
    train = read_yaml(folder / CONFIG).get("train")
    epochs = train.get("epochs") if isinstance(train, dict) else None
    of_all = f" of {epochs}" if isinstance(epochs, int) else ""
    history = folder / HISTORY
    last = last_row(history) if history.exists() else {}
    if not last:
        return f"running: first epoch{of_all}"
    epoch, validation = number(last, "epoch"), number(last, "val_accuracy")
    text = (f"epoch {epoch:.10g}" if is_number(epoch) else "an epoch done") + of_all
    if is_number(validation) and 0 <= validation <= 1:
        text += f", validation {validation:.3f}".replace(" 0.", " .")
    written = time.strftime("%H:%M", time.localtime(history.stat().st_mtime))
    trained = is_number(epoch) and epoch == epochs
    return f"trained, no result yet: {text} at {written}" if trained else f"running: {text} at {written}"


def last_row(history: Path) -> dict[str, Any]:
    try:
        return [{}, *csv.DictReader(read_content(history, 64 * MEGABYTE).decode().splitlines())][-1]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{history} is damaged ({error})") from None


def number(row: dict[str, Any], name: str) -> float | None:
    try:
        return float(row[name])
    except (KeyError, TypeError, ValueError):
        return None
