"""One-sided 95 % confidence bounds: how bad a mean or a share may be, given so many images or seeds."""

from __future__ import annotations

import math

import numpy as np

CONFIDENCE = 0.95


def mean_bound(values: np.ndarray, side: int) -> float:
    """mean ± t₀.₉₅(n−1) · s/√n, above for side 1 and below for side −1; infinite for fewer than two values."""
    from scipy.stats import t

    count = len(values)
    if count < 2:
        return side * math.inf
    return float(np.mean(values) + side * t.ppf(CONFIDENCE, count - 1) * np.std(values, ddof=1) / math.sqrt(count))


def share_bound(share: float, count: int, side: int) -> float:
    """Wilson's bound (1927) of a share that was found in so many trials, also where it is 0 or 1."""
    from scipy.stats import norm

    square = float(norm.ppf(CONFIDENCE)) ** 2
    middle = share + square / (2 * count)
    spread = math.sqrt(square * (share * (1 - share) / count + square / (4 * count**2)))
    return (middle + side * spread) / (1 + square / count)


def ratio_bound(above: np.ndarray, below: np.ndarray, side: int) -> float:
    """Of mean(above) / mean(below) over the same images: R plus the bound of the mean of (above − R·below) / mean."""
    ratio = float(above.mean() / below.mean())
    return ratio + mean_bound((above - ratio * below) / below.mean(), side)
