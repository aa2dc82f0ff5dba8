"""`attcem sweep`, once its file is read: the lock, the engine, the table, and what is said at the end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attcem.sweep.cluster import Cluster
from attcem.sweep.driver import Engine, check_fresh, only_sweep, sweep
from attcem.sweep.grid import Run
from attcem.sweep.local import Local
from attcem.sweep.table import Table
from attcem.terminal import interruptible, tell


def do_sweep(
    runs: Sequence[Run], out: Path, *, engine: str, jobs: int | None, address: str | None, resume: bool
) -> None:
    """Do what is missing in a folder; raise if any run failed."""
    with only_sweep(out):
        if not resume:
            check_fresh(runs, out)
        where: Engine = Cluster(jobs, address) if engine == "ray" else Local(jobs)
        table = Table(out)
        try:
            with interruptible("finished runs and epochs are kept: add --resume to the same command"):
                outcomes = sweep(runs, out, where, table)
        finally:
            table.close()
    failed = sum(outcome.cause is not None for outcome in outcomes.values())
    if failed:
        raise ValueError(f"{failed} of {len(runs)} runs failed, each with a log.txt: mend the cause, then add --resume")
    tell(f"compare       attcem compare {out}", f"page          attcem report {out} --out report.html")
