"""How much memory a training step takes with a surrogate and without, each in a process of its own."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from attcem.types import Batch
from benchmarks.harness import Figure
from benchmarks.step import BATCH, CLASSES, LATENT, PRIVATE, SURROGATES, Step, surrogate

PLAIN = "plain"
ROUNDS = 3
STEPS = 3

GIVEN_BACK = {"MALLOC_MMAP_THRESHOLD_": "131072"}
"""Freed tensors leave the process at once. Otherwise their holes, by chance a tenth more or less, hide the figure."""


def figures() -> Iterator[Figure]:
    found = [{name: megabytes_of(name) for name in (PLAIN, *SURROGATES)} for _ in range(ROUNDS)]
    for name in SURROGATES:
        value = statistics.median(each[name] / each[PLAIN] for each in found)
        yield Figure(f"surrogates: peak memory with {name} / without", value, 1.15, at_least=False)


def megabytes_of(name: str) -> float:
    """What another process says of itself."""
    command = [sys.executable, "-m", "benchmarks.memory", name]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, env=os.environ | GIVEN_BACK).stdout)


def measure(name: str) -> float:
    """Megabytes that training adds to the process: its libraries and the network would only hide what is compared.

    A few steps, and a review of an epoch's latents for a surrogate that asks for it.
    """
    torch.set_num_threads(1)
    step = Step(None if name == PLAIN else surrogate(name))
    before = megabytes("VmRSS")
    for _ in range(STEPS):
        step()
    for link in step.guard.links:
        link.review(epoch(step.x))
    return megabytes("VmHWM") - before


def epoch(x: torch.Tensor) -> Iterator[Batch]:
    """Latents of all private images, at five places only, so that k-means ends soon."""
    for _ in range(PRIVATE // BATCH):
        place = torch.randint(0, 5, (BATCH, 1, 1, 1)).float()
        yield Batch(x, torch.randint(0, CLASSES, (BATCH,)), place.expand(-1, *LATENT).contiguous())


def megabytes(field: str) -> float:
    """Of this process: VmRSS now, VmHWM at its peak. What `getrusage` calls the peak includes the parent's."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise ValueError(f"/proc/self/status has no {field}")


if __name__ == "__main__":
    print(measure(sys.argv[1]))
