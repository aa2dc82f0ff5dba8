"""What leaked in one run: the best attack, its score on every image, and the share of the picture it recovered."""

from collections.abc import Collection

import numpy as np

from attcem.runs.numbers import is_number
from attcem.types import Result, Scores

LOWER_IS_NEARER = {"mse", "aligned_mse", "feature_distance", "lpips"}


def recovered_share(scores: Scores, run: Result) -> float:
    """1 − MSE / MSE of the mean image, at least 0: what an attack saw of all there is beyond the average picture."""
    ratio = run.over_free(scores, "mse")
    return max(0.0, 1 - ratio) if is_number(ratio) else float("nan")


def best_attack(run: Result, among: Collection[str], metric: str = "mse") -> str | None:
    """The attack with the best mean, of those named that attacked every picture, sent once; NaN never wins."""
    names = [name for name in run.attacks if name in among and name not in run.repeated]
    scores = {name: run.attacks[name].named().get(metric) for name in names}
    whole = {name: score for name, score in scores.items() if score is not None and score.n == run.worst.mse.n}
    measured = {name: float(score) for name, score in whole.items() if is_number(float(score))}
    best = min if metric in LOWER_IS_NEARER else max
    return best(measured, key=measured.__getitem__) if measured else None


def per_attack(run: Result, metric: str) -> dict[str, np.ndarray]:
    """Attack → its score on every image, of attacks on one send."""
    keys = {name: f"{name}/{metric}" for name in run.attacks if name not in run.repeated}
    return {name: np.asarray(run.per_image[key], float) for name, key in keys.items() if key in run.per_image}


def worst_per_image(run: Result, metric: str = "mse") -> np.ndarray:
    """What the best attack reached, image by image; empty when it was not kept."""
    if f"worst/{metric}" in run.per_image:
        return np.asarray(run.per_image[f"worst/{metric}"], dtype=float)
    kept = list(per_attack(run, metric).values())
    if not kept or len({len(values) for values in kept}) > 1:
        return np.empty(0)
    return (np.fmin if metric == "mse" else np.fmax).reduce(kept)
