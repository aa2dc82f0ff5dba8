"""How much less a defence lets an attacker describe pictures than the same network without it."""

from dataclasses import dataclass

import numpy as np

from attcem.compare.reach import scores_at
from attcem.metrics.stats import paired_bootstrap
from attcem.runs import Curve
from attcem.runs.described import PER_IMAGE, described
from attcem.runs.numbers import mean


@dataclass(frozen=True)
class Drop:
    """Shares of pictures of which every attribute is right, and the interval of how much smaller the first is."""

    described: float
    undefended: float
    chance: float
    low: float
    high: float

    @property
    def words(self) -> str:
        points, low, high = (f"{100 * value:.1f}" for value in (self.undefended - self.described, self.low, self.high))
        return (
            f"all attributes of a picture are told right at once for {100 * self.described:.1f} %, undefended "
            f"{100 * self.undefended:.1f} %: a drop of {points} points (95 % interval {low} to {high}; "
            f"chance {100 * self.chance:.1f} %)"
        )


def drop_at(curve: Curve, accuracy: float, *, draws: int, seed: int) -> Drop | None:
    """At this accuracy, over the seeds that also have an undefended run; none where not all were asked."""
    if any(PER_IMAGE not in run.per_image for run in [*curve.runs, *curve.undefended]):
        return None
    ours = scores_at(curve, accuracy, PER_IMAGE)
    bare = {run.seed: run.per_image[PER_IMAGE] for run in curve.undefended}
    shared = sorted(ours.keys() & bare.keys())
    if not shared:
        return None
    here, there = (np.stack([scores[one] for one in shared]).astype(np.float64) for scores in (ours, bare))
    found = paired_bootstrap(there, here, draws=draws, seed=seed)
    chance = mean([described(run, "chance") for run in curve.undefended])
    return Drop(float(here.mean()), float(there.mean()), chance, found.low, found.high)
