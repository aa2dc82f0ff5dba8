"""The judge: holds the truth, scores every guess against it, and keeps each image's worst case."""

from __future__ import annotations

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
        self.truth, self.evaluator = truth, evaluator
        self.pixels = truth.pixels()
        self.metrics = {name: metric for name, metric in METRICS.items() if metric.fits(self.pixels)}
        self.scores: dict[str, dict[str, Float[Tensor, " n"]]] = {}
        self.closest: list[str] = []
        """For each image the attack whose MSE is lowest, once the worst case is known."""

    def score(self, name: str, guess: Float[Tensor, "m c h w"]) -> None:
        """Score one attack's pictures of the first images with every metric."""
        guess, truth = guess.cpu().float(), self.pixels[: len(guess)]
        straight = aligned(guess, truth)
        found = {metric: compute(guess, truth) for metric, compute in self.metrics.items()}
        found |= {
            f"aligned_{metric}": self.metrics[metric](straight, truth) for metric in ALIGNED if metric in self.metrics
        }
        found["recon_acc"] = self.evaluator.recognised(guess, self.truth.y[: len(guess)])
        found["feature_distance"] = self.evaluator.distance(guess, truth)
        found |= {f"reid_top{top}": reidentified(guess, self.pixels, top) for top in (1, 5)}
        missing = torch.full((len(self.truth) - len(guess),), torch.nan)
        self.scores[name] = {metric: torch.cat([values.float(), missing]) for metric, values in found.items()}

    def mean(self, name: str, metric: str = "mse", first: int | None = None) -> float:
        """One attack's mean of one metric, over all it attacked or the first so many images."""
        return self.scores[name][metric][:first].nanmean().item()

    def covered(self, name: str) -> int:
        """How many images an attack reconstructed."""
        return int((~self.scores[name]["mse"].isnan()).sum())

    def summary(self, name: str) -> Scores:
        """One attack's scores over the images."""
        return Scores.of({metric: Summary.of(values.numpy()) for metric, values in self.scores[name].items()})

    def worst(self, attacks: Sequence[str]) -> Scores:
        """For each image and metric, the attack that did best."""
        self.scores["worst"] = {}
        for metric in self.scores[attacks[0]]:
            higher = self.higher_is_better(metric)
            stacked = torch.stack([self.scores[name][metric] for name in attacks])
            stacked = stacked.nan_to_num(nan=-torch.inf if higher else torch.inf)
            self.scores["worst"][metric] = stacked.amax(0) if higher else stacked.amin(0)
            if metric == "mse":
                self.closest = [attacks[i] for i in stacked.argmin(0).tolist()]
        return self.summary("worst")

    def higher_is_better(self, metric: str) -> bool:
        """Whether a higher score is a better reconstruction."""
        plain = metric.removeprefix("aligned_")
        return METRICS[plain].higher_is_better if plain in METRICS else plain != "feature_distance"

    def per_class(self, names: Sequence[str]) -> dict[str, dict[str, float]]:
        """Worst-case means for each class, and how many images they rest on."""
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
        """Every score of every image, for later statistics."""
        return {f"{name}/{metric}": v.numpy() for name, found in self.scores.items() for metric, v in found.items()}
