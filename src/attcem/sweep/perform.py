"""One run of a sweep, wherever it happens: in its folder, one process at a time, all that it says kept in a log."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TextIO

from attcem.config import Experiment
from attcem.workplace import working_in

LOG = "log.txt"
RUN = "attcem.experiment:run"


@dataclass(frozen=True)
class Job:
    """What a worker is asked to do; `call` names a function that is called as `attcem.experiment.run` is."""

    name: str
    folder: Path
    experiment: Experiment
    call: str = RUN


@dataclass(frozen=True)
class Outcome:
    """What became of a job: figures, or the cause of its failure; `died` if its worker did not live to tell."""

    accuracy: float | None = None
    mse: float | None = None
    cause: str | None = None
    died: bool = False
    seconds: float = 0.0


def perform(job: Job) -> Outcome:
    """Do a job, or go on with it, once no orphan is at it; what goes wrong is an outcome, its traceback in the log."""
    started = time.monotonic()
    try:
        if not job.folder.parent.is_dir():
            raise ValueError(f"{socket.gethostname()} does not see {job.folder.parent}: all machines must share --out")
        with working_in(job.folder, wait=True), speaking_into(job.folder / LOG):
            forget_earlier_peak()
            module, _, function = job.call.partition(":")
            result, _ = getattr(import_module(module), function)(job.experiment, job.folder, resume=True, jobs=1)
            shutil.rmtree(job.folder / "audit", ignore_errors=True)  # killed between its result and its last step
            return Outcome(float(result.accuracy), float(result.worst.mse), seconds=time.monotonic() - started)
    except Exception as error:
        expected = isinstance(error, ValueError | OSError)
        cause = str(error) if expected else f"{type(error).__name__}: {error}"
        return Outcome(cause=" ".join(cause.split()), seconds=time.monotonic() - started)


@contextlib.contextmanager
def speaking_into(path: Path) -> Iterator[None]:
    """Everything that this process prints goes to a log."""
    sys.stdout.flush(), sys.stderr.flush()
    before = os.dup(1), os.dup(2)
    with path.open("a", buffering=1) as log:
        os.dup2(log.fileno(), 1), os.dup2(log.fileno(), 2)
        try:
            with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
                say(log, f"\n{time.strftime('%Y-%m-%d %H:%M:%S')}  process {os.getpid()} on {socket.gethostname()}\n")
                try:
                    yield
                except Exception:
                    say(log, traceback.format_exc())
                    raise
        finally:
            for kept, number in zip(before, (1, 2), strict=True):
                os.dup2(kept, number)
                os.close(kept)


def say(log: TextIO, text: str) -> None:
    """Write to the log, or do without: a full disk must not hide why a run failed."""
    with contextlib.suppress(OSError):
        log.write(text)


def forget_earlier_peak() -> None:
    """Start this process's peak memory afresh, so that a run is not charged for an earlier one (Linux only)."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
