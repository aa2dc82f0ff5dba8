"""The sweep itself: what is missing, what may start, what to try again. Run folders are all the state there is."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from attcem.locks import only_one
from attcem.sweep.grid import Run
from attcem.sweep.perform import RUN, Job, Outcome
from attcem.sweep.table import Table
from attcem.types.result import OtherSchema, Result

LOCK = ".sweep.lock"
DAMAGED = "result.json.damaged"
ATTEMPTS = 3
"""How often a run is started whose process dies under it."""


class Engine(Protocol):
    """Where runs happen."""

    slots: int

    def start(self, job: Job) -> None:
        """Begin a job; never called with more than `slots` under way."""

    def wait(self, seconds: float) -> list[tuple[Job, Outcome]]:
        """Jobs that have ended, after at most so many seconds."""

    def close(self) -> None:
        """Stop everything that is under way."""


def sweep(runs: Sequence[Run], out: Path, engine: Engine, table: Table, *, call: str = RUN) -> dict[str, Outcome]:
    """Do all runs that have no result yet, and tell what became of each; call it under `only_sweep`.

    read which runs are finished
    while any is left:
        start as many as there is room for
        when one ends: keep its figures, or its cause; one whose process died is tried again, a few times
    """
    settled = {run.name: found for run in runs if (found := finished(out / run.name))}
    table.begin(runs, settled, engine.slots)
    waiting = deque(run for run in runs if run.name not in settled)
    by_name = {run.name: run for run in waiting}
    attempts: Counter[str] = Counter()
    running = 0
    try:
        while waiting or running:
            while running < engine.slots and waiting:
                run = waiting.popleft()
                attempts[run.name] += 1
                engine.start(Job(run.name, out / run.name, run.experiment, call))
                table.started(run.name, attempts[run.name])
                running += 1
            for job, outcome in engine.wait(0.5):
                running -= 1
                if outcome.died and attempts[job.name] < ATTEMPTS:
                    waiting.appendleft(by_name[job.name])
                    table.died(job.name, outcome)
                    continue
                settled[job.name] = outcome
                table.ended(job.name, outcome)
            table.show()
    finally:
        engine.close()
    return settled


def finished(folder: Path) -> Outcome | None:
    """The figures of a run that needs nothing more; a result that is not whole is put aside, to be made again."""
    path = folder / "result.json"
    if not path.exists():
        return None
    try:
        result = Result.read(path)
    except OtherSchema as error:
        raise ValueError(f"{error}: choose another --out") from None
    except ValueError:
        path.replace(path.with_name(DAMAGED))
        return None
    found = Outcome(result.accuracy, float(result.worst.mse))
    return None if (folder / "audit").exists() else found  # killed before it had tidied up: a worker will


def check_fresh(runs: Sequence[Run], out: Path) -> None:
    """Refuse to go on with runs that nobody asked to resume."""
    begun = [run.name for run in runs if (out / run.name).exists()]
    if begun:
        raise ValueError(
            f"{out} already holds {len(begun)} of these runs, {begun[0]} for one: add --resume to complete what is "
            "missing, or --out for another folder"
        )


def only_sweep(out: Path) -> AbstractContextManager[None]:
    """Hold a folder for one sweep."""
    return only_one(out / LOCK, "a sweep is at work", "wait for it, or choose another --out")
