"""Attacks on one run side by side: `python -m attcem.side_by_side RUN SETTINGS N DEVICE` is one of N processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from attcem.config import GRANTS, AuditConfig
from attcem.cores import ending, sharing
from attcem.naming import look_up
from attcem.progress import say

if TYPE_CHECKING:
    from attcem.attacks import Attack

HELPER = [sys.executable, "-m", "attcem.side_by_side"]


def side_by_side(
    folder: Path, config: AuditConfig, jobs: int | None = None, *, device: str = "auto", progress: bool = True
) -> None:
    """Let several processes attack a run, and return when nothing is left to do; for one process, do nothing.

    If `jobs` is not given, as many are started as the suite keeps busy. What they finish is kept in the run's folder,
    where the audit finds it. If a process dies, the audit does its attack again, and reports the reason if that fails.
    """
    from attcem.assess.share import jobs_worth

    jobs = jobs or jobs_worth(attacks_of(config))
    if jobs == 1:
        return
    command = [*HELPER, str(folder), json.dumps(asdict(config)), str(jobs), device]
    helpers = [
        subprocess.Popen(command, env=sharing(jobs), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for _ in range(jobs)
    ]
    with ThreadPoolExecutor(jobs) as relays:
        for number, helper in enumerate(helpers, start=1):
            relays.submit(relay, f"[{number}] ", helper, progress)
        try:
            for number, helper in enumerate(helpers, start=1):
                if helper.wait():
                    say(f"[{number}] {ending(helper.returncode)}: the audit does what it left", shown=progress)
        finally:
            for helper in helpers:
                helper.kill()
                helper.wait()


def attacks_of(config: AuditConfig) -> dict[str, Attack]:
    from attcem.assess import allowed
    from attcem.attacks import SUITES

    return allowed(look_up("suite", config.suite, SUITES).attacks, look_up("threat model", config.threat, GRANTS))[0]


def relay(mark: str, helper: subprocess.Popen[str], shown: bool) -> None:
    """Pass on what a process prints; once this end is closed, the next line it prints ends it."""
    for line in helper.stderr or ():
        say(mark + line.rstrip(), shown=shown)


def help_out(folder: Path, config: AuditConfig, processes: int, device: str) -> None:
    """As one of several processes, do those attacks of the audit that no other has taken."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: who started this one decides
    import torch

    from attcem.assess import observe, take_part
    from attcem.assess.share import Finished
    from attcem.experiment import as_attacked, load_run, read_experiment

    experiment = read_experiment(folder)
    model, guard, data = load_run(folder, device=device, experiment=experiment)
    data, _ = as_attacked(experiment, data)
    with torch.random.fork_rng():
        _, view, _ = observe(model, guard, data, config)
        kept = Finished(folder / "audit", view, config.seed)
        take_part(attacks_of(config), view, kept, seed=config.seed, processes=processes)


if __name__ == "__main__":
    help_out(Path(sys.argv[1]), AuditConfig(**json.loads(sys.argv[2])), int(sys.argv[3]), sys.argv[4])
