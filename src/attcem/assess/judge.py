"""The judge: holds the truth, scores every guess against it, and keeps each image's worst case."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attcem.metrics import METRICS, Evaluator, aligned, reidentified
from attcem.types import Images, Scores, Summary

ALIGNED = ("mse", "ssim")
"""Metrics that are also taken after the guess was aligned with the truth."""

PERCENTILES = (1, 5, 25, 50, 75, 95, 99)


class Judge:
    """Every score of every attack; an image that an attack left out has NaN."""

    def __init__(self, truth: Images, evaluator: Evaluator) -> None:
        self.truth, self.pixels, self.evaluator = truth, truth.pixels(), evaluator
        self.metrics = {name: metric for name, metric in METRICS.items() if metric.fits(self.pixels)}
        self.scores: dict[str, dict[str, Float[Tensor, " n"]]] = {}
        self.closest: list[str] = []
        """For each image the attack whose MSE is lowest, once the worst case is known."""

    def score(self, name: str, guess: Float[Tensor, "m c h w"]) -> None:
        guess, truth = guess.cpu().float(), self.pixels[: len(guess)]
        straight = aligned(guess, truth)
        found = {metric: compute(guess, truth) for metric, compute in self.metrics.items()}
        found |= {f"aligned_{one}": self.metrics[one](straight, truth) for one in ALIGNED if one in self.metrics}
        found["recon_acc"] = self.evaluator.recognised(guess, self.truth.y[: len(guess)])
        found["feature_distance"] = self.evaluator.distance(guess, truth)
        found |= {f"reid_top{top}": reidentified(guess, self.pixels, top) for top in (1, 5)}
        missing = torch.full((len(self.truth) - len(guess),), torch.nan)
        self.scores[name] = {metric: torch.cat([values.float(), missing]) for metric, values in found.items()}

    def mean(self, name: str, first: int | None = None) -> float:
        return self.scores[name]["mse"][:first].nanmean().item()

    def summary(self, name: str) -> Scores:
        return Scores.of({metric: Summary.of(values.numpy()) for metric, values in self.scores[name].items()})

    def worst(self, attacks: Sequence[str]) -> Scores:
        """For each image and metric, the attack that did best."""
        self.scores["worst"] = {}
        for metric in self.scores[attacks[0]]:
            plain = metric.removeprefix("aligned_")
            higher = METRICS[plain].higher_is_better if plain in METRICS else plain != "feature_distance"
            stacked = torch.stack([self.scores[name][metric] for name in attacks])
            stacked = stacked.nan_to_num(nan=-torch.inf if higher else torch.inf)
            self.scores["worst"][metric] = stacked.amax(0) if higher else stacked.amin(0)
            if metric == "mse":
                self.closest = [attacks[i] for i in stacked.argmin(0).tolist()]
        return self.summary("worst")

    def per_class(self, names: Sequence[str]) -> dict[str, dict[str, float]]:
        table = {}
        for label, name in enumerate(names):
            mine = self.truth.y == label
            if mine.any():
                means = {metric: values[mine].mean().item() for metric, values in self.scores["worst"].items()}
                table[name] = means | {"n": int(mine.sum())}
        return table

    def risk(self, per_class: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
        """Of the worst case: percentiles, the class that leaks most, the share of images above SSIM 0.5."""
        worst = self.scores["worst"]
        leaks_most = min(per_class, key=lambda name: per_class[name]["mse"])
        return {
            "percentiles": {
                metric: {f"p{p:02d}": float(np.percentile(worst[metric], p)) for p in PERCENTILES}
                for metric in ("mse", "ssim")
            },
            "worst_class": {"name": leaks_most, "mse": per_class[leaks_most]["mse"]},
            "ssim_above_half": (worst["ssim"] > 0.5).float().mean().item(),
            "evaluator_accuracy": self.evaluator.accuracy,
        }

    def per_image(self) -> dict[str, np.ndarray]:
        return {f"{name}/{metric}": v.numpy() for name, found in self.scores.items() for metric, v in found.items()}
