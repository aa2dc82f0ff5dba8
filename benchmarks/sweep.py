"""What a sweep gains over single runs, and what its driver costs per run: stubs write a result and do nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from attcem.sweep.driver import only_one, sweep
from attcem.sweep.grid import read_sweep
from attcem.sweep.local import Local
from attcem.sweep.table import Table
from attcem.types.result import SCHEMA
from benchmarks import stub
from benchmarks.harness import Figure, seconds

SMALL = {
    "data": {"name": "fashion"},
    "model": {"backbone": "vgg11_bn", "cut": 4, "width": 0.25},
    "train": {"epochs": 1},
    "audit": {"suite": "smoke", "images": 200},
}
FOUND = {"schema": SCHEMA, "accuracy": 0.5, "worst": {"mse": {"mean": 0.1}}}
SIGMAS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]


def stubs(count: int) -> None:
    """A whole sweep of stubs: the file is read and checked, workers start, every run is started and told of."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "grid.yaml", Path(folder) / "out"
        path.write_text(yaml.safe_dump({"grid": {"defence.noise.sigma": [i / 1000 for i in range(count)]}}))
        with only_one(out):
            (out / stub.RESULT).write_text(json.dumps(FOUND))
            sweep(read_sweep(path, {}), out, Local(), Table(out, shown=False), call="benchmarks.stub:run")


def eight_runs(folder: Path) -> Iterator[Figure]:
    """How often faster a sweep of eight small runs is than the same runs as single commands, one after the other.

    The goal is for single runs with a thread each, as a worker has: 2 at best on two cores. Beside single runs that
    take every core, a sweep gains only what their threads lose, and their start-up.
    """
    base, grid = folder / "base.yaml", folder / "grid.yaml"
    base.write_text(yaml.safe_dump(SMALL))
    grid.write_text(yaml.safe_dump({"base": str(base), "grid": {"defence.noise.sigma": SIGMAS}}))
    attcem = [sys.executable, "-m", "attcem"]

    def do(*command: object, **environment: str) -> None:
        subprocess.run([*attcem, *map(str, command)], check=True, capture_output=True, env=os.environ | environment)

    def single(**environment: str) -> float:
        started = [("run", base, "--defence.noise.sigma", sigma, "--out", folder / f"{sigma}") for sigma in SIGMAS]
        taken = sum(seconds(lambda command=command: do(*command, **environment)) for command in started)
        for sigma in SIGMAS:
            shutil.rmtree(folder / f"{sigma}")
        return taken

    do("run", base, "--out", folder / "warm")
    by_one = single(OMP_NUM_THREADS="1")
    swept = seconds(lambda: do("sweep", grid, "--out", folder / "swept"))
    by_all = single()
    yield Figure("sweep: eight single runs of one thread / one sweep of them", by_one / swept, 1.7)
    yield Figure("sweep: eight single runs of all threads / one sweep of them", by_all / swept)


def figures() -> Iterator[Figure]:
    stubs(2)
    each = {}
    for count in (10, 100, 1000):
        each[count] = 1000 * seconds(lambda count=count: stubs(count)) / count
        yield Figure(f"sweep: milliseconds per run, {count} stubs", each[count], 50, at_least=False)
    yield Figure("sweep: cost of a run among 1,000 / among 100", each[1000] / each[100], 1.5, at_least=False)
    with tempfile.TemporaryDirectory() as folder:
        yield from eight_runs(Path(folder))
