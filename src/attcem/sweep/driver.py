"""The sweep: what is missing, what may start, what to try again. Run folders are all the state there is."""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path

from attcem.locks import only_one
from attcem.sweep.cluster import Cluster
from attcem.sweep.grid import Run
from attcem.sweep.local import Local
from attcem.sweep.perform import RUN, Job, Outcome
from attcem.sweep.table import Table
from attcem.terminal import interruptible, tell
from attcem.types.result import OtherSchema, Result

LOCK = ".sweep.lock"
DAMAGED = "result.json.damaged"
Engine = Local | Cluster
"""Where runs happen: at most `slots` are under way; `wait` returns what has ended, after at most so many seconds."""
ATTEMPTS = 3  # how often a run is started before a dying process counts as a failure


def do_sweep(runs: list[Run], out: Path, *, engine: str, jobs: int | None, address: str | None, resume: bool) -> None:
    with only_one(out / LOCK, "a sweep is at work", "wait for it, or choose another --out"):
        begun = [run.name for run in runs if (out / run.name).exists()]
        if begun and not resume:
            raise ValueError(
                f"{out} already holds {len(begun)} of these runs, {begun[0]} for one: add --resume to complete what is "
                "missing, or --out for another folder"
            )
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


def sweep(
    runs: Sequence[Run],
    out: Path,
    engine: Engine,
    table: Table,
    *,
    call: str = RUN,
    settled: Callable[[Path], Outcome | None] | None = None,
) -> dict[str, Outcome]:
    """Do all runs that are not finished, and return the outcome of each; call it while the folder is locked.

    `call` names the function that does a run, `settled` reads what it left when it was done: a result, if not given.
    """
    outcomes = {run.name: found for run in runs if (found := (settled or finished)(out / run.name))}
    table.begin(runs, outcomes, engine.slots)
    waiting = deque(Job(run.name, out / run.name, run.experiment, call) for run in runs if run.name not in outcomes)
    attempts: Counter[str] = Counter()
    running = 0
    try:
        while waiting or running:
            while running < engine.slots and waiting:
                job = waiting.popleft()
                attempts[job.name] += 1
                engine.start(job)
                table.started(job.name, attempts[job.name])
                running += 1
            for job, outcome in engine.wait(0.5):
                running -= 1
                again = outcome.died and attempts[job.name] < ATTEMPTS
                table.ended(job.name, outcome, again=again)
                if again:
                    waiting.appendleft(job)
                else:
                    outcomes[job.name] = outcome
            table.show()
    finally:
        engine.close()
    return outcomes


def finished(folder: Path) -> Outcome | None:
    """The figures of a finished run; a damaged result is put aside and made again."""
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
    return None if (folder / "audit").exists() else found  # killed before it removed this: a worker will
