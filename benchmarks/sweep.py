"""What a sweep gains over single runs, and what its driver costs per run: stubs write a result and do nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from attcem.sweep.driver import sweep
from attcem.sweep.grid import read_sweep
from attcem.sweep.local import Local
from attcem.sweep.table import Table
from attcem.types.result import SCHEMA
from benchmarks import stub
from benchmarks.harness import Figure, seconds

RUN = {
    "data": {"name": "fashion"},
    "model": {"backbone": "vgg11_bn", "cut": 4},
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
        out.mkdir()
        (out / stub.RESULT).write_text(json.dumps(FOUND))
        sweep(read_sweep(path, {}), out, Local(), Table(out, shown=False), call="benchmarks.stub:run")


def eight_runs(folder: Path, width: float) -> float:
    """How often faster a sweep of eight runs is than the same runs as single commands, one after the other.

    A single run takes every core, so a sweep gains what its threads lose, and all starts but one. Half of the single
    runs are timed before the sweep and half after it: the machine may change its speed meanwhile.
    """
    base, grid = folder / "base.yaml", folder / "grid.yaml"
    base.write_text(yaml.safe_dump(RUN))
    grid.write_text(yaml.safe_dump({"base": str(base), "grid": {"defence.noise.sigma": SIGMAS}}))

    def do(*command: object) -> None:
        every = [*command, "--model.width", width]
        subprocess.run([sys.executable, "-m", "attcem", *map(str, every)], check=True, capture_output=True)

    def single(sigma: float) -> float:
        return seconds(lambda: do("run", base, "--defence.noise.sigma", sigma, "--out", folder / f"{sigma}"))

    do("run", base, "--out", folder / "warm")
    before = sum(map(single, SIGMAS[:4]))
    swept = seconds(lambda: do("sweep", grid, "--out", folder / "swept"))
    after = sum(map(single, SIGMAS[4:]))
    return (before + after) / swept


def figures() -> Iterator[Figure]:
    stubs(2)
    each = {}
    for count in (10, 100, 1000):
        each[count] = 1000 * seconds(lambda count=count: stubs(count)) / count
        yield Figure(f"sweep: milliseconds per run, {count} stubs", each[count], 50, at_least=False)
    yield Figure("sweep: cost of a run among 1,000 / among 100", each[1000] / each[100], 1.5, at_least=False)
    for width, goal in ((0.125, 1.7), (0.25, None)):
        with tempfile.TemporaryDirectory() as folder:
            found = eight_runs(Path(folder), width)
            yield Figure(f"sweep: eight single runs / one sweep of them, {width} of the width", found, goal)
