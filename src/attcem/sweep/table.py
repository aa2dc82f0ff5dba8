"""What a sweep shows: a live table on a terminal, a line per event elsewhere."""

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from rich.console import Group
from rich.live import Live
from rich.table import Table as Grid
from rich.text import Text

from attcem.escaping import in_terminal
from attcem.progress import console, say
from attcem.sweep.grid import Run
from attcem.sweep.perform import LOG, Outcome

NEAR = 0.05  # how much accuracy the best run may lack against the most accurate one
REACHED = re.compile(r"^(epoch \d+/\d+|attack \d+ of \d+: \w+)", re.MULTILINE)


class Table:
    """Counts, what runs now and how far it is, the best so far, and the time left."""

    def __init__(self, out: Path, *, shown: bool = True) -> None:
        self.out, self.shown = out, shown
        self.outcomes: dict[str, Outcome] = {}
        self.running: dict[str, float] = {}
        self.spent: list[float] = []
        self.labels: dict[str, str] = {}
        self.total, self.slots = 0, 1
        self.live = Live(console=console, auto_refresh=False, transient=True) if shown and console.is_terminal else None

    def begin(self, runs: Sequence[Run], settled: Mapping[str, Outcome], slots: int) -> None:
        self.outcomes, self.total, self.slots = dict(settled), len(runs), slots
        self.labels = {run.name: run.label for run in runs}
        before = f", {len(settled)} finished before" if settled else ""
        say(f"{self.total} runs{before}, {slots} at a time, in {self.out}", shown=self.shown)

    def started(self, name: str, attempt: int) -> None:
        self.running[name] = time.monotonic()
        again = f" again, attempt {attempt}" if attempt > 1 else ""
        self.line(f"{name}: started{again} ({self.labels[name]})")

    def ended(self, name: str, outcome: Outcome, *, again: bool = False) -> None:
        seconds = time.monotonic() - self.running.pop(name)
        if again:
            self.line(f"{name}: {outcome.cause}; it will go on from its last epoch or attack")
            return
        self.outcomes[name] = outcome
        if outcome.cause is None:
            self.spent.append(seconds)
            self.line(f"{name}: {figures(outcome.accuracy, outcome.mse)} after {seconds:.0f} s; {self.summary()}")
        else:
            self.line(f"{name}: FAILED, {outcome.cause}; see {self.out / name / LOG}")

    def line(self, text: str) -> None:
        """A line for a log; on a terminal the table tells it."""
        say(text, shown=self.shown and self.live is None)

    def summary(self) -> str:
        failed = sum(outcome.cause is not None for outcome in self.outcomes.values())
        left = self.total - len(self.outcomes)
        parts = [f"{len(self.outcomes) - failed} of {self.total} done", f"{len(self.running)} running"]
        parts += [f"{failed} failed"] if failed else []
        if left and self.spent:
            parts.append(f"about {clock(fmean(self.spent) * left / min(left, self.slots))} left")
        return ", ".join(parts)

    def best(self) -> tuple[str, Outcome] | None:
        done = [(name, outcome) for name, outcome in self.outcomes.items() if outcome.cause is None]
        top = max((outcome.accuracy for _, outcome in done), default=0.0)
        near = [(name, outcome) for name, outcome in done if outcome.accuracy >= top - NEAR]
        return max(near, key=lambda named: named[1].mse, default=None)

    def best_line(self) -> str:
        if (best := self.best()) is None:
            return ""
        name, outcome = best
        found = f"{name} ({self.labels[name]}), {figures(outcome.accuracy, outcome.mse)}"
        return f"hides most within {NEAR} of the best accuracy: {found}"

    def show(self) -> None:
        if self.live is None:
            return
        if not self.live.is_started:
            self.live.start()
        grid = Grid("running", "settings", "reached", "time", box=None)
        for name, since in self.running.items():
            cells = (name, self.labels[name], reached(self.out / name / LOG), clock(time.monotonic() - since))
            grid.add_row(*(Text(in_terminal(cell)) for cell in cells))
        self.live.update(Group(Text(self.summary()), grid, Text(in_terminal(self.best_line()))), refresh=True)

    def close(self) -> None:
        """Take the live table down, and leave what stays: the best run, and why any failed."""
        if self.live is not None and self.live.is_started:
            self.live.stop()
        say(self.summary(), shown=self.shown)
        say(self.best_line(), shown=self.shown and self.best_line() != "")
        failed = {name: o.cause for name, o in self.outcomes.items() if o.cause is not None}
        width = max(map(len, failed), default=0)
        for name, cause in failed.items():
            say(f"failed  {name:<{width}}  {cause}")


def reached(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4096))
            found = REACHED.findall(file.read().decode(errors="replace"))
    except OSError:
        return ""
    return found[-1] if found else ""


def figures(accuracy: float, mse: float) -> str:
    return f"accuracy {accuracy:.4f}, worst MSE {mse:.5f}"


def clock(seconds: float) -> str:
    """Seconds as people say them.

    >>> clock(75), clock(7300)
    ('1 min 15 s', '2 h 1 min')
    """
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
