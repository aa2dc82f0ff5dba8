"""Which of several places to take, and how sure that is: the choice is made again on resampled seeds and images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int64

from attcem.metrics.stats import PerSeed, resampled_means

DRAWS = 2000


class Choice(NamedTuple):
    """The place to take, and how often each place would have been taken had seeds and images fallen otherwise."""

    best: int
    shares: list[float]

    @property
    def sure(self) -> float:
        return self.shares[self.best]


def choose(correct: Sequence[PerSeed], mse: Sequence[PerSeed], *, lose: float, draws: int = DRAWS) -> Choice:
    """The place that hides most among those within `lose` of the best accuracy.

    Tables have a row per seed and a column per image, the same ones at every place. Resampling takes the same seeds
    and images everywhere, so that what is hard for all places does not count as doubt between them; accuracy and MSE
    are drawn apart. With one seed only images vary, and the doubt that another training would raise is not counted.
    """
    best = hiding_most(*(np.array([[table.mean()] for table in tables]) for tables in (correct, mse)), lose=lose)
    accuracy = np.stack([resampled_means(table, draws=draws, seed=0) for table in correct])
    hidden = np.stack([resampled_means(table, draws=draws, seed=1) for table in mse])
    winners = hiding_most(accuracy, hidden, lose=lose)
    return Choice(int(best[0]), (np.bincount(winners, minlength=len(mse)) / draws).tolist())


def hiding_most(
    accuracy: Float[np.ndarray, "places draws"], mse: Float[np.ndarray, "places draws"], *, lose: float
) -> Int64[np.ndarray, " draws"]:
    """The place with the highest MSE of those whose accuracy is at most `lose` below the best one, draw by draw."""
    able = accuracy >= accuracy.max(0) - lose - 1e-12
    return np.where(able, mse, -np.inf).argmax(0)
