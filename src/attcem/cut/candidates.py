"""Train and measure every place, and recommend one: a sweep of its own kind, in folders that are taken up again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attcem.config import Experiment
from attcem.cut.choose import Choice, choose
from attcem.cut.measure import FILE, Measured
from attcem.cut.places import Place
from attcem.locks import only_one
from attcem.metrics.stats import PerSeed
from attcem.runs.numbers import mean
from attcem.sweep.driver import LOCK, sweep
from attcem.sweep.local import Local
from attcem.sweep.perform import Outcome
from attcem.sweep.table import Table

MEASURE = "attcem.cut.measure:measure"


class Candidate(NamedTuple):
    """A place with what was measured there, seed by seed."""

    place: Place
    seeds: list[Measured]

    def mean(self, figure: str) -> float:
        """Of the seeds; NaN where it was not measured."""
        return mean([getattr(one, figure) for one in self.seeds])

    def values(self, figure: str) -> list[float]:
        return [getattr(one, figure) for one in self.seeds]


class Progress(Table):
    """The table of a sweep without its own idea of the best run: what is best is told at the end."""

    def best_line(self) -> str:
        return ""


def search(
    experiment: Experiment, places: Sequence[Place], out: Path, *, seeds: Sequence[int], jobs: int | None = None
) -> tuple[list[Candidate], int]:
    """Every place with the seeds that could be measured, and the number of runs that failed; what is there is kept."""
    runs = [place.runs(experiment, seeds) for place in places]
    with only_one(out / LOCK, "a search is at work", "wait for it, or choose another --out"):
        shown = Progress(out)
        try:
            every = [run for of_place in runs for run in of_place]
            outcomes = sweep(every, out, Local(jobs), shown, call=MEASURE, settled=settled)
        finally:
            shown.close()
    failed = sum(outcome.cause is not None for outcome in outcomes.values())
    found = [[one for run in of_place if (one := measured(out / run.name))] for of_place in runs]
    whole = [Candidate(place, each) for place, each in zip(places, found, strict=True) if len(each) == len(seeds)]
    return whole, failed


def recommend(candidates: Sequence[Candidate], *, lose: float, compute: float) -> tuple[Candidate, dict[str, float]]:
    """The place to take, and how often each place would be taken: of those that the device can compute.

    `lose` is how far accuracy may be below the best of them, `compute` the largest share of the backbone's
    multiplications that the device can do.
    """
    able = [candidate for candidate in candidates if candidate.mean("device_share") <= compute]
    if not able:
        least = min((candidate.mean("device_share") for candidate in candidates), default=float("nan"))
        raise ValueError(f"no place asks at most {compute:g} of the multiplications of the device: give {least:.3f}")
    correct, mse = ([stacked(candidate, figure) for candidate in able] for figure in ("correct", "mse"))
    choice: Choice = choose(correct, mse, lose=lose)
    return able[choice.best], {one.place.name: share for one, share in zip(able, choice.shares, strict=True)}


def stacked(candidate: Candidate, figure: str) -> PerSeed:
    return np.array([getattr(one, figure) for one in candidate.seeds], dtype=float)


def settled(folder: Path) -> Outcome | None:
    found = measured(folder)
    return Outcome(found.accuracy, mean(found.mse)) if found else None


def measured(folder: Path) -> Measured | None:
    """What a finished run found; a file that is not whole counts as none, and is made again."""
    try:
        return Measured.read(folder) if (folder / FILE).exists() else None
    except ValueError:
        return None
