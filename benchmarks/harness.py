"""Interleaved timing: what is compared runs in turns, so that a noisy machine disturbs both alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One measured figure and its goal, if it has one."""

    name: str
    value: float
    goal: float | None = None
    at_least: bool = True

    @property
    def holds(self) -> bool:
        """Whether the goal is met."""
        return self.goal is None or (self.value >= self.goal if self.at_least else self.value <= self.goal)

    def __str__(self) -> str:
        verdict, sign = "ok  " if self.holds else "MISS", "≥" if self.at_least else "≤"
        aim = "no goal" if self.goal is None else f"goal {sign} {self.goal:g}"
        return f"{verdict}  {self.name:<62} {self.value:6.2f}  {aim}"


def seconds(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """How long one call takes."""
    started = clock()
    call()
    return clock() - started


def ratio(
    numerator: Callable[[], object],
    denominator: Callable[[], object],
    rounds: int = 15,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Median over rounds of time(numerator) / time(denominator), each round running both; the first is thrown away."""
    found = [seconds(numerator, clock) / seconds(denominator, clock) for _ in range(rounds + 1)]
    return statistics.median(found[1:])
