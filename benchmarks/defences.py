"""What the other defences cost in a training step; on one thread, in seconds of the processor, as for surrogates."""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch

from attcem.defences import create_defence
from benchmarks.harness import Figure, ratio
from benchmarks.step import SURROGATES, Step

RELEASE_ONLY = 1.03
GOALS = {
    "local_dp": RELEASE_ONLY,
    "dropout": RELEASE_ONLY,
    "topk": RELEASE_ONLY,
    "lca": RELEASE_ONLY,
    "pruning": RELEASE_ONLY,
    "vib": RELEASE_ONLY,
    "nopeek": 1.10,
    "fisher": 3.00,
    "arl": 2.20,
    "adversary": 1.70,
    "dct": RELEASE_ONLY,
    "wire": RELEASE_ONLY,
    "adversarial_noise": 2.20,
}
STEPS = 7
"""Rounds of what takes a second."""

ELSEWHERE = {name for name, _ in SURROGATES.values()} | {"none", "noise", "transfer"}
"""Timed as surrogates, or nothing to time: a frozen encoder only saves."""


def figures() -> Iterator[Figure]:
    """Each against the same step under noise alone; ARL with one step of its adversary."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        plain = Step()
        for name, goal in GOALS.items():
            value = ratio(Step(create_defence(name)), plain, STEPS, clock=time.process_time)
            yield Figure(f"defences: step with {name} / without", value, goal, at_least=False)
    finally:
        torch.set_num_threads(threads)
