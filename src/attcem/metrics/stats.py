"""What scores of several images and seeds allow to be said: intervals, tests, and lines between points.

Scores lie in a table, one row per seed and one column per image: the same images under every seed and every defence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

PerSeed = Float[np.ndarray, "seeds images"]
CHUNK = 500  # bootstrap draws made at once
TAIL = 50 * (1 - 0.95)  # per cent of the draws that lie beyond either end of an interval


class Difference(NamedTuple):
    """A mean difference, the interval it lies in, and how easily it would come about by chance."""

    mean: float
    low: float
    high: float
    p: float


def few_seeds(seeds: int) -> float:
    """√(s/(s−1)) · t₀.₉₇₅(s−1) / z₀.₉₇₅: how much wider the spread of few seeds is than resampling them shows.

    A draw with replacement has only (s−1)/s of the variance, and knows nothing of how badly few seeds estimate it.
    """
    from scipy.stats import norm, t

    return 1.0 if seeds < 2 else math.sqrt(seeds / (seeds - 1)) * float(t.ppf(0.975, seeds - 1) / norm.ppf(0.975))


def resampled_means(scores: PerSeed, *, draws: int = 10_000, seed: int = 0) -> Float[np.ndarray, " draws"]:
    """Means of the table with seeds drawn with replacement, then images, the same ones under every seed.

    The seeds' means are first moved apart by `few_seeds`. One seed is kept as it is: then only images vary.
    """
    rng = np.random.default_rng(seed)
    seeds, images = scores.shape
    level = scores.mean(1, keepdims=True)
    widened = scores + (few_seeds(seeds) - 1) * (level - level.mean())
    means = []
    for start in range(0, draws, CHUNK):
        size = min(CHUNK, draws - start)
        shares = rng.multinomial(seeds, np.full(seeds, 1 / seeds), size) / seeds
        means.append(np.take_along_axis(shares @ widened, rng.integers(images, size=(size, images)), 1).mean(1))
    return np.concatenate(means)


def bootstrap_interval(scores: PerSeed, *, draws: int = 10_000, seed: int = 0) -> tuple[float, float]:
    low, high = np.percentile(resampled_means(scores, draws=draws, seed=seed), [TAIL, 100 - TAIL])
    return float(low), float(high)


def share_interval(right: Float[np.ndarray, " n"], group: np.ndarray | None = None) -> tuple[float, float]:
    """Wilson's 95 % interval of a share of right answers; those of one group count for less, as far as they agree.

    n is divided by the design effect, Σ_g (Σ_{i∈g} (x_i − p))² / (n·p·(1 − p)) · G/(G − 1), at least 1; where all
    answers agree, each of the G groups counts once.
    """
    n, p = float(len(right)), float(np.mean(right))
    if group is not None:
        _, member = np.unique(group, return_inverse=True)
        groups = int(member.max()) + 1
        off, varies = np.bincount(member, right - p), n * p * (1 - p)
        effect = float(np.square(off).sum()) / varies * groups / max(1, groups - 1) if varies > 0 else math.inf
        n = max(groups, n / max(1.0, effect))
    z = 1.959964
    centre, half = (p + z**2 / (2 * n)) / (1 + z**2 / n), z * math.sqrt(p * (1 - p) / n + (z / (2 * n)) ** 2)
    return max(0.0, centre - half / (1 + z**2 / n)), min(1.0, centre + half / (1 + z**2 / n))


def paired_bootstrap(ours: PerSeed, theirs: PerSeed, *, draws: int = 10_000, seed: int = 0) -> Difference:
    """The mean of ours − theirs over the same seeds and images, its percentile interval, and a two-sided p.

    p = 2·min(#{mean ≤ 0} + 1, #{mean ≥ 0} + 1) / (draws + 1), at most 1: never zero, and below 0.05 about when the
    interval leaves zero out.
    """
    differences = ours - theirs
    means = resampled_means(differences, draws=draws, seed=seed)
    low, high = np.percentile(means, [TAIL, 100 - TAIL])
    beyond = 1 + min(int((means <= 0).sum()), int((means >= 0).sum()))
    return Difference(float(differences.mean()), float(low), float(high), min(1.0, 2 * beyond / (draws + 1)))


def wilcoxon_signed_rank(differences: Float[np.ndarray, " images"]) -> float:
    """Two-sided p of paired differences that are as often and as far above zero as below; zeros are left out."""
    from scipy.stats import wilcoxon

    return float(wilcoxon(differences).pvalue) if np.any(differences) else 1.0


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's correction of several tests' p: the i-th smallest of m times m − i + 1, never below a smaller one's.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected, running = [0.0] * len(ps), 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        running = max(running, min(1.0, (len(ps) - rank) * ps[index]))
        corrected[index] = running
    return corrected


def interpolate(at: float, x: Float[np.ndarray, " k"], y: Float[np.ndarray, "k n"]) -> Float[np.ndarray, " n"] | None:
    """The value at a place on straight lines between neighbours along x; None beyond the first and the last.

    Points at one and the same x count as their mean.
    """
    places, heights = _merged(x, y)
    if not places[0] <= at <= places[-1]:
        return None
    right = int(np.searchsorted(places, at))
    if places[right] == at:
        return heights[right]
    share = (at - places[right - 1]) / (places[right] - places[right - 1])
    return (1 - share) * heights[right - 1] + share * heights[right]


def area_under(x: Float[np.ndarray, " k"], y: Float[np.ndarray, " k"], low: float, high: float) -> float:
    """The mean height of those lines between two places; NaN where they do not reach."""
    if not low < high:
        raise ValueError(f"an area needs a span, not {low} to {high}: give low < high")
    column = y[:, None]
    first, last = interpolate(low, x, column), interpolate(high, x, column)
    if first is None or last is None:
        return math.nan
    places, heights = _merged(x, column)
    inside = (low < places) & (places < high)
    along = np.concatenate([[low], places[inside], [high]])
    up = np.concatenate([first, heights[inside, 0], last])
    return float(np.diff(along) @ (up[1:] + up[:-1]) / 2 / (high - low))


def _merged(x: Float[np.ndarray, " k"], y: Float[np.ndarray, "k n"]) -> tuple[np.ndarray, np.ndarray]:
    places, where = np.unique(x, return_inverse=True)
    return places, np.stack([y[where == place].mean(0) for place in range(len(places))])
