"""A training step by two processes against one process at the same global batch, on one thread each and on two.

The two are started once. In every round they take a step together, then the first takes the same step alone while the
other sleeps: whatever else the machine does disturbs all of them alike.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator

import torch
import torch.distributed as dist

from attcem.defences import create_defence
from attcem.train.distributed import join
from attcem.train.gradients import one_pass
from benchmarks.harness import Figure, seconds
from benchmarks.step import Step

ROUNDS = 9
ALONE = ("one thread", "two threads")
"""What one process may use where two have a thread each."""

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]


def figures() -> Iterator[Figure]:
    """How many times faster two processes are than one."""
    command = [*TORCHRUN, "--nproc-per-node", "2", "-m", "benchmarks.distributed"]
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment).stdout
    for name, value in json.loads(said).items():
        yield Figure(f"distributed: step of one process on {name} / of two", value)


def measure() -> dict[str, float]:
    """Medians of the ratios over the rounds, the first of which is thrown away; noise and bound(diag) at batch 128."""
    team = join("cpu")
    alone = Step(create_defence("bound"))
    together = Step(create_defence("bound"), lambda *given: one_pass(*given, team))
    found: dict[str, list[float]] = {name: [] for name in ALONE}
    with team.whole_batch(together.model):
        for _ in range(ROUNDS + 1):
            torch.set_num_threads(1)
            dist.barrier()
            by_two = seconds(together)
            for threads, name in enumerate(ALONE, start=1):
                dist.barrier()
                if team.first:
                    torch.set_num_threads(threads)
                    found[name].append(seconds(alone) / by_two)
    return {name: statistics.median(ratios[1:]) for name, ratios in found.items()} if team.first else {}


if __name__ == "__main__":
    ratios = measure()
    if ratios:
        print(json.dumps(ratios))
