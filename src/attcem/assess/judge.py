"""The judge: holds the truth, scores every guess against it with an evaluator, and keeps each image's worst case."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from safetensors.torch import save
from torch import Tensor

from attcem.attacks.suite import RECIPE
from attcem.data import Data, default_root
from attcem.files import write_atomically
from attcem.maths.recognition import recognition
from attcem.metrics import METRICS, Evaluator, aligned, reidentified
from attcem.reading.arrays import tensors_of
from attcem.reading.plain import MEGABYTE, read_content
from attcem.types import Images, People, Scores, Summary

CPU = torch.device("cpu")
LARGEST = 64 * MEGABYTE  # a judge of a thousand classes takes one

_TRAINED: dict[tuple[str, torch.device], Evaluator] = {}


class Judge:
    """Every score of every attack; an image that an attack left out has NaN."""

    def __init__(self, truth: Images, evaluator: Evaluator, people: People | None = None) -> None:
        self.truth, self.pixels, self.evaluator, self.people = truth, truth.pixels(), evaluator, people
        self.metrics = {name: metric for name, metric in METRICS.items() if metric.fits(self.pixels)}
        self.scores: dict[str, dict[str, Float[Tensor, " n"]]] = {}
        self.closest: list[str] = []  # for each image the attack whose MSE is lowest, once the worst case is known

    def score(self, name: str, guess: Float[Tensor, "m c h w"]) -> None:
        guess, truth = guess.cpu().float(), self.pixels[: len(guess)]
        turned = aligned(guess, truth)
        found = {metric: compute(guess, truth) for metric, compute in self.metrics.items()}
        found |= {f"aligned_{one}": self.metrics[one](turned, truth) for one in ("mse", "ssim") if one in self.metrics}
        found["recon_acc"] = self.evaluator.recognised(guess, self.truth.y[: len(guess)])
        found["feature_distance"] = self.evaluator.distance(guess, truth)
        found |= {f"reid_top{top}": reidentified(guess, self.pixels, top) for top in (1, 5)}
        if self.people:
            found |= recognition(self.people.likeness(self.people.embed(guess)), self.truth.y[: len(guess)])
        missing = torch.full((len(self.truth) - len(guess),), torch.nan)
        self.scores[name] = {metric: torch.cat([values.float(), missing]) for metric, values in found.items()}

    def mean(self, name: str, first: int | None = None) -> float:
        return self.scores[name]["mse"][:first].nanmean().item()

    def summary(self, name: str) -> Scores:
        return Scores.of({metric: Summary.of(values.numpy()) for metric, values in self.scores[name].items()})

    def worst(self, attacks: Sequence[str]) -> Scores:
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
        members = {name: self.truth.y == label for label, name in enumerate(names)}
        return {
            name: {metric: values[mine].mean().item() for metric, values in self.scores["worst"].items()}
            | {"n": int(mine.sum())}
            for name, mine in members.items()
            if mine.any()
        }

    def risk(self, per_class: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
        worst = self.scores["worst"]
        leaks_most = min(per_class, key=lambda name: per_class[name]["mse"])
        return {
            "percentiles": {
                metric: {f"p{p:02d}": float(np.percentile(worst[metric], p)) for p in (1, 5, 25, 50, 75, 95, 99)}
                for metric in ("mse", "ssim")
            },
            "worst_class": {"name": leaks_most, "mse": per_class[leaks_most]["mse"]},
            "ssim_above_half": (worst["ssim"] > 0.5).float().mean().item(),
            "evaluator_accuracy": self.evaluator.accuracy,
        }

    def per_image(self) -> dict[str, np.ndarray]:
        return {f"{name}/{metric}": v.numpy() for name, found in self.scores.items() for metric, v in found.items()}


def evaluator_for(data: Data, seen: int, progress: bool, device: torch.device = CPU) -> Evaluator:
    """Trained once on `seen` of the private images, on none of which any attack is scored; then read from the cache."""
    name = digest(data.private, data.classes, seen)
    if (name, device) not in _TRAINED:
        path, images = default_root() / "evaluators" / f"{name}.safetensors", data.private.to(device)
        with torch.random.fork_rng():  # an audit's own draws must not depend on what lies in the cache
            found = read(path, images, data.classes)
            if found is None:
                found = Evaluator.train(images, data.classes, seed=0, progress=progress, seen=seen)
                state = {key: tensor.cpu().contiguous() for key, tensor in found.network.state_dict().items()}
                state["accuracy"] = torch.tensor(found.accuracy, dtype=torch.float64)
                with suppress(OSError):
                    write_atomically(path, save(state))
        _TRAINED[name, device] = found
    return _TRAINED[name, device]


def digest(images: Images, classes: int, seen: int) -> str:
    """What tells one evaluator from another: its very images and labels, and how long it learns."""
    found = hashlib.sha256(f"{RECIPE} {classes} {seen} {tuple(images.x.shape)}".encode())
    for tensor in (images.x, images.y):
        found.update(tensor.cpu().contiguous().numpy().data)
    return found.hexdigest()[:32]


def read(path: Path, images: Images, classes: int) -> Evaluator | None:
    """The one that was kept; a file that is missing or not whole counts as nothing."""
    try:
        found = Evaluator.restored(tensors_of(read_content(path, LARGEST), path), images, classes)
        return found if 0 <= found.accuracy <= 1 else None
    except (OSError, ValueError, KeyError, RuntimeError):
        return None
