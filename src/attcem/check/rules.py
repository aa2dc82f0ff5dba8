"""What can be asked of an audit, and the number in it that each threshold is about."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from attcem.check.confidence import mean_bound, ratio_bound, share_bound
from attcem.types import Result

Measured = tuple[float, float]  # what was found, and how bad it may be with confidence over images


@dataclass(frozen=True)
class Measure:
    """A number of an audit; `side` is 1 where high is bad, and a threshold is the most allowed, or else −1."""

    name: str
    side: int
    of: Callable[[Result, int], Measured]
    most: float = math.inf  # that it can be


def scores(run: Result, key: str) -> np.ndarray:
    """One number for each attacked image."""
    found = run.per_image.get(key)
    if found is None or not len(found) or not np.isfinite(found).all():
        what = "no per-image scores" if found is None or not len(found) else "scores that are not finite,"
        raise ValueError(f"it has {what} {key}: audit it again, `attcem audit RUN`")
    return np.asarray(found, dtype=np.float64)


def mean_of(metric: str) -> Callable[[Result, int], Measured]:
    def measure(run: Result, side: int) -> Measured:
        values = scores(run, f"worst/{metric}")
        return float(values.mean()), mean_bound(values, side)

    return measure


def share_of(metric: str) -> Callable[[Result, int], Measured]:
    def measure(run: Result, side: int) -> Measured:
        values = scores(run, f"worst/{metric}")
        return float(values.mean()), share_bound(float(values.mean()), len(values), side)

    return measure


def mse_ratio(run: Result, side: int) -> Measured:
    worst, free = scores(run, "worst/mse"), scores(run, "mean_image/mse")
    if len(worst) != len(free) or not free.mean() > 0:
        raise ValueError("its mean image was judged on other images: audit it again, `attcem audit RUN`")
    return float(worst.mean() / free.mean()), ratio_bound(worst, free, side)


def accuracy(run: Result, side: int) -> Measured:
    """On all test images; a result that does not say how many counts as one on the attacked images."""
    sizes = ((run.config.get("data") or {}).get("draw") or {}).get("sizes") or {}
    images = sizes.get("test") or len(scores(run, "worst/mse"))
    return run.accuracy, share_bound(run.accuracy, int(images), side)


MEASURES = {
    "max_ssim": Measure("ssim", 1, mean_of("ssim"), 1.0),
    "min_mse": Measure("mse", -1, mean_of("mse")),
    "min_mse_ratio": Measure("mse ratio", -1, mse_ratio),
    "max_rank1": Measure("rank-1", 1, share_of("reid_top1"), 1.0),
    "max_recon_acc": Measure("recon acc", 1, share_of("recon_acc"), 1.0),
    "min_accuracy": Measure("accuracy", -1, accuracy),
}


@dataclass(frozen=True)
class Rules:
    """The thresholds of a gate; those that are None are not asked for."""

    max_ssim: float | None = None
    min_mse: float | None = None
    min_mse_ratio: float | None = None
    max_rank1: float | None = None
    max_recon_acc: float | None = None
    min_accuracy: float | None = None
    suite: str | None = None
    allowed: tuple[str, ...] = ()
    """Flags that do not fail: texts that they contain, and a number of others."""

    def __post_init__(self) -> None:
        if not self.thresholds:
            raise ValueError(f"nothing is asked for: give one of {', '.join(map(option, MEASURES))}")
        for name, threshold in self.thresholds.items():
            if not math.isfinite(threshold):
                raise ValueError(f"{option(name)} {threshold} is no threshold: give a number such as 0.25")

    @property
    def thresholds(self) -> dict[str, float]:
        return {name: value for name in MEASURES if (value := getattr(self, name)) is not None}

    def objectionable(self, flags: Sequence[str]) -> list[str]:
        """The flags that no text allows, or none where no more are left than are allowed."""
        texts = [text.lower() for text in self.allowed if not text.isdigit()]
        left = [flag for flag in flags if not any(text in flag.lower() for text in texts)]
        return left if len(left) > sum(int(number) for number in self.allowed if number.isdigit()) else []


def option(name: str) -> str:
    return "--" + name.replace("_", "-")
