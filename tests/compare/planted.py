"""Made-up runs whose truth is known, and what a comparison of them says."""

from __future__ import annotations

from typing import Any

import numpy as np

from attcem.compare import Comparison, Row, compare
from attcem.types import Result
from tests.report.made import make_result

IMAGES = 60
PROFILE = np.random.default_rng(0).uniform(-0.008, 0.008, IMAGES)
PROFILE -= PROFILE.mean()
"""How much harder each picture is than the average one, whatever the defence."""
TRAIN = {"epochs": 5, "ramp": 0.0}
BOUND = "noise + bound"


def made(defence: Any, accuracy: float, mse: float, seed: int = 0, jitter: float = 0.0, **changes: Any) -> Result:
    """A run whose per-image MSE averages to `mse`, with noise of its own on every image."""
    rng = np.random.default_rng([seed, int(1e6 * accuracy), int(1e6 * abs(mse))])
    noise = jitter * rng.normal(size=IMAGES)
    config = {"data": {"name": "fashion", "seed": 0}, "train": TRAIN, "audit": {"suite": "demo", "images": 60}}
    flags = changes.pop("flags", ())
    run = make_result(
        mse=mse, accuracy=accuracy, defence=defence, seed=seed, pictures=0, flags=flags, **(config | changes)
    )
    values = mse + PROFILE + noise - noise.mean()
    run.per_image = {"worst/mse": values.astype(np.float32), "worst/ssim": 1 - 10 * values, "worst/psnr": -values}
    return run


def noise(sigma: float) -> dict[str, Any]:
    return {"noise": {"sigma": sigma}}


def bound(lam: float, assign: str = "slot", **options: Any) -> dict[str, Any]:
    return noise(0.1) | {"bound": {"lam": lam, "assign": assign, **options}}


def planted(gap: float, seeds: int = 3, jitter: float = 0.001) -> list[Result]:
    """Noise loses 0.1 MSE per accuracy point; the bound lies `gap` above it; no defence has 0.02 at 0.9."""
    runs = []
    for seed in range(seeds):
        runs.append(made({}, 0.9, 0.02, seed, jitter))
        for strength, accuracy in ((1, 0.8), (2, 0.7), (4, 0.6)):
            runs.append(made(noise(strength), accuracy, 0.02 + 0.1 * (0.9 - accuracy), seed, jitter))
            runs.append(made(bound(strength), accuracy, 0.02 + 0.1 * (0.9 - accuracy) + gap, seed, jitter))
    return runs


def row(comparison: Comparison, name: str) -> Row:
    return next(row for row in comparison.rows if row.defence == name)


def quickly(runs: list[Result], **options: Any) -> Comparison:
    return compare(runs, draws=400, **options)
