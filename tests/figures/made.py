"""Made-up runs that have everything a figure can show."""

from typing import Any

import numpy as np

from attcem.types import Result
from tests.report.made import CLASSES, make_result

NOISE = {"noise": {"sigma": 0.3}}
SLOT = {"noise": {"sigma": 0.1}, "slot": {"lam": 16.0, "form": "mixture"}}


def whole(defence: Any, mse: float, accuracy: float, seed: int = 0, **changes: Any) -> Result:
    """A run that recorded every part."""
    where = {"data": {"name": "fashion", "seed": 0}} | changes
    run = make_result(mse=mse, accuracy=accuracy, defence=defence, seed=seed, **where)
    run.per_class = {name: {"mse": mse * (1 + number / 10)} for number, name in enumerate(CLASSES)}
    run.curves = {"repeats": {"64": mse / 2, "1": mse, "4": mse / 1.5}, "pairs": {"all": mse, "100": 2 * mse}}
    run.bounds = {"mse_floor_estimate": mse / 2, "fisher": {"mse": mse / 1.8}} if defence else {}
    for number, row in enumerate(run.history, 1):
        row |= {"epoch": number, "penalty_weight": 0.5 * number, "slot/intra_mse": 0.1 / number, "slot/shut_off": 0.5}
    return run


def several(seeds: int = 3) -> list[Result]:
    """No defence, noise at two strengths, and a chain."""
    rng = np.random.default_rng(0)
    runs = []
    for seed in range(seeds):
        for defence, mse, accuracy in (
            ({}, 0.01, 0.9),
            (NOISE, 0.03, 0.8),
            ({"noise": {"sigma": 0.6}}, 0.05, 0.7),
            (SLOT, 0.04, 0.85),
        ):
            runs.append(whole(defence, mse * rng.uniform(0.9, 1.1), accuracy + rng.uniform(-0.01, 0.01), seed))
    return runs
