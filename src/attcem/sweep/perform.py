"""One run of a sweep, wherever it happens: in its folder, one process at a time, all that it says kept in a log."""

import contextlib
import math
import os
import shutil
import socket
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple, TextIO

from attcem.config import Experiment
from attcem.workplace import working_in

LOG = "log.txt"
RUN = "attcem.experiment:run"


class Job(NamedTuple):
    """What a worker is asked to do; `call` names a function that is called as `attcem.experiment.run` is."""

    name: str
    folder: Path
    experiment: Experiment
    call: str = RUN


class Outcome(NamedTuple):
    """The figures of a job, or the cause of its failure; `died` if the worker ended without an answer."""

    accuracy: float = math.nan
    mse: float = math.nan
    cause: str | None = None
    died: bool = False


def perform(job: Job) -> Outcome:
    """Do or resume a job once no other process works in its folder; an error is an outcome, its traceback is logged."""
    try:
        if not job.folder.parent.is_dir():
            raise ValueError(f"{socket.gethostname()} does not see {job.folder.parent}: all machines must share --out")
        with working_in(job.folder, wait=True), printing_into(job.folder / LOG):
            with contextlib.suppress(OSError):  # only Linux can reset the peak memory, which is then this run's alone
                Path("/proc/self/clear_refs").write_text("5")
            result, _ = resolve_name(job.call)(job.experiment, job.folder, resume=True, jobs=1)
            shutil.rmtree(job.folder / "audit", ignore_errors=True)  # killed between its result and its last step
            return Outcome(float(result.accuracy), float(result.worst.mse))
    except Exception as error:
        expected = isinstance(error, ValueError | OSError)
        cause = str(error) if expected else f"{type(error).__name__}: {error}"
        return Outcome(cause=" ".join(cause.split()))


@contextlib.contextmanager
def printing_into(path: Path) -> Iterator[None]:
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
    """Write to the log if possible: a full disk must not hide why a run failed."""
    with contextlib.suppress(OSError):
        log.write(text)
