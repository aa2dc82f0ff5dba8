"""The first honest table: every surrogate and plain noise on CIFAR-10, at a recipe that two cores can afford.

    python -m benchmarks.cem_cifar10 --jobs 2          # runs what is missing, one thread each; may be interrupted
    python -m benchmarks.cem_cifar10_table             # renders docs/results.md and its figure from results/

Reduced against the documents' full settings: a quarter of the width (0.6 M weights), 5 epochs of the modern recipe
instead of 240, suite `demo` (two decoders, cut short) on 1,000 test images.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

RESULTS = Path("results/cem_cifar10")
SIGMA = 0.1
FIXED: dict[str, Any] = {
    "data": {"name": "cifar10"},
    "model": {"backbone": "vgg11_bn", "cut": 4, "width": 0.25, "bottleneck": 8},
    "train": {"epochs": 5},
    "audit": {"suite": "demo", "images": 1000},
}


def under_noise(
    name: str, strengths: list[float], *, sigma: float = SIGMA, ramp: float = 0.0, **options: Any
) -> dict[str, dict[str, Any]]:
    """A surrogate at several weights, all at the same noise and after one epoch of warm-up."""
    chains = {f"{lam:g}": {"noise": {"sigma": sigma}, name: {"lam": lam, "warmup": 1, **options}} for lam in strengths}
    return {lam: {"defence": chain, "train": FIXED["train"] | {"ramp": ramp}} for lam, chain in chains.items()}


GRID: dict[str, dict[str, dict[str, Any]]] = {
    "none": {"0": {"defence": {}}},
    "noise": {f"{sigma:g}": {"defence": {"noise": {"sigma": sigma}}} for sigma in (0.1, 0.3, 0.6, 1.0)},
    "gmm-hinge": under_noise("gmm", [0.3, 1.0, 3.0, 10.0]),
    "gated-hinge": under_noise("gated", [0.25, 1.0, 4.0]),
    "gated-gates": under_noise("gated", [4.0, 16.0, 64.0], form="gates"),
    "gated-open": under_noise("gated", [16.0], form="gates", open_gates=True),
    "slot-hinge": under_noise("slot", [0.1, 0.4, 1.6]),
    "slot-mixture": under_noise("slot", [4.0, 16.0, 64.0], form="mixture", shut_off=False),
    "slot-open": under_noise("slot", [16.0], form="mixture", open_gates=True),
    "hybrid": under_noise("hybrid", [0.25, 1.0, 4.0]),
    "bound-class": under_noise("bound", [0.3, 1.0, 3.0]),
    "bound-gram": under_noise("bound", [1.0, 10.0, 30.0], cov="gram"),
    "bound-memory": under_noise("bound", [1.0], memory=0.9),
    "bound-ramp": under_noise("bound", [1.0], ramp=2.0),
    "bound-noisy": under_noise("bound", [0.3], sigma=0.3),
    "bound-gated": under_noise("bound", [0.3, 1.0, 3.0], assign="gated", memory=0.9),
    "bound-slot": under_noise("bound", [0.3, 1.0, 3.0], assign="slot", tokens="spatial", memory=0.9),
}
"""Row of the table → strength → what it adds to the fixed settings. The weights are a coarse grid, not tuned."""


def missing(seeds: list[int], only: str) -> list[tuple[str, dict[str, Any]]]:
    """Experiments without a result, all rows' first seed before any second one."""
    found = []
    for seed in seeds:
        for row, strengths in GRID.items():
            for strength, settings in strengths.items():
                name = f"{row}-{strength}-s{seed}"
                if only in name and not (RESULTS / f"{name}.json").exists():
                    found.append((name, FIXED | settings | {"seed": seed, "name": f"{row}-{strength}"}))
    return found


def work(name: str, experiment: dict[str, Any], runs: Path) -> None:
    """One experiment in a process of its own; its result is kept without the pictures."""
    runs.mkdir(parents=True, exist_ok=True)
    settings = runs / f"{name}.yaml"
    settings.write_text(json.dumps(experiment))
    with (runs / f"{name}.log").open("w") as log:
        done = subprocess.run(
            [sys.executable, "-m", "attcem", "run", settings, "--out", runs / name, "--resume"],
            env=os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    if done.returncode:
        print(f"{name}: failed, see {log.name}", flush=True)
        return
    result = json.loads((runs / name / "result.json").read_text())
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, separators=(",", ":")) + "\n")
    print(f"{name}: accuracy {result['accuracy']:.3f}, worst MSE {result['worst']['mse']['mean']:.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--runs", type=Path, default=Path("runs/cem_cifar10"), help="where runs are kept")
    options = parser.parse_args()
    with ThreadPoolExecutor(options.jobs) as pool:
        for name, experiment in missing(options.seeds, options.only):
            pool.submit(work, name, experiment, options.runs)


if __name__ == "__main__":
    main()
