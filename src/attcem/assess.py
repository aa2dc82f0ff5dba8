"""The audit: attack through the View, judge against the truth, keep everything per image."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attcem.attacks import BASELINES, SUITES, Reconstruction
from attcem.attacks.checks import adequacy_flags
from attcem.config import AuditConfig, with_options
from attcem.data import Data
from attcem.data.loader import in_order
from attcem.defences import Defence, describe
from attcem.metrics import METRICS, reidentified
from attcem.models import Split
from attcem.naming import look_up
from attcem.progress import say
from attcem.threat import build_view
from attcem.train import caveat, evaluate
from attcem.types import Images, Result, Scores, Summary

SHOWN = 10
"""Pictures kept for the gallery."""


def audit(
    model: Split,
    guard: Defence,
    data: Data,
    config: AuditConfig | None = None,
    *,
    experiment: dict[str, Any] | None = None,
    progress: bool = True,
    **options: Any,
) -> Result:
    """Attack a trained split network with a suite, score every image, and say how much leaks at what accuracy.

    This is the only place that looks at `data.test`. `options` are fields of AuditConfig; `experiment` is the
    configuration to record, made from the arguments if not given.
    """
    config = with_options(config or AuditConfig(), options)
    suite = look_up("suite", config.suite, SUITES)
    with torch.random.fork_rng():
        torch.manual_seed(config.seed)
        _, accuracy = evaluate(model, guard, data.test)
        say(f"accuracy on released test latents {accuracy:.4f}", shown=progress)
        view, truth = build_view(model, guard, data, images=config.images, seed=config.seed)
        guesses = {name: Reconstruction(guess(view, truth.y)) for name, guess in BASELINES.items()}
        judge = Judge(model, guard, truth)
        for name, guess in guesses.items():
            judge.score(name, guess)
        for name, attack in suite.items():
            guesses[name] = attack(view, seed=config.seed, progress=progress)
            judge.score(name, guesses[name])
            mse, floor = judge.mean(name, "mse"), judge.mean("mean_image", "mse")
            say(f"{name}: MSE {mse:.5f}  (mean image {floor:.5f})", shown=progress)
    worst = judge.worst(list(suite))
    record = model.record
    return Result(
        config=experiment or describe_experiment(model, guard, data, config),
        seed=config.seed if record is None else record.seed,
        accuracy=accuracy,
        attacks={name: judge.summary(name) for name in suite},
        worst=worst,
        baselines={name: judge.summary(name) for name in BASELINES},
        per_class=judge.per_class(data.class_names),
        flags=adequacy_flags(
            {name: guesses[name] for name in suite},
            worst=worst,
            mean_image=judge.summary("mean_image"),
            accuracy=accuracy,
            classes=data.classes,
            undefended=all(name == "none" for name in describe(guard)),
        )
        + training_flags(model, guard),
        cost=costs(model, view.targets),
        history=[] if record is None else record.history,
        versions={"python": platform.python_version()} | {name: version(name) for name in ("attcem", "torch", "numpy")},
        commit=current_commit(),
        surrogate_only=max(record.surrogate_only.values(), default=None) if record else None,
        labels=[data.class_names[int(y)] for y in truth.y[:SHOWN]],
        gallery=gallery(truth, guesses),
        per_image=judge.per_image(),
        diagnostics=stacked(record.diagnostics) if record else {},
    )


class Judge:
    """Holds the truth and every score against it."""

    def __init__(self, model: Split, guard: Defence, truth: Images) -> None:
        self.model, self.guard, self.truth = model, guard, truth
        self.pixels = truth.pixels()
        self.scores: dict[str, dict[str, Tensor]] = {}

    def score(self, name: str, guess: Reconstruction) -> None:
        """Score one attack's images with every metric."""
        images = guess.images.cpu().float()
        found = {metric: compute(images, self.pixels) for metric, compute in METRICS.items()}
        found["recon_acc"] = self.recognised(images)
        found["reid_top1"] = reidentified(images, self.pixels)
        self.scores[name] = found

    @torch.no_grad()
    def recognised(self, images: Tensor) -> Tensor:
        """1 where the network, fed the reconstruction, names the original's class."""
        where = next(self.model.parameters())
        as_set = Images((images * 255).round().to(torch.uint8).permute(0, 2, 3, 1), self.truth.y)
        right = [
            self.model.decoder(self.guard.release(self.model.encoder(x.to(where.dtype)))).argmax(1) == y
            for x, y in in_order(as_set, device=where.device)
        ]
        return torch.cat(right).float().cpu()

    def mean(self, name: str, metric: str) -> float:
        """One attack's mean of one metric."""
        return self.scores[name][metric].mean().item()

    def summary(self, name: str) -> Scores:
        """One attack's scores over the images."""
        return Scores(**{metric: Summary.of(values.numpy()) for metric, values in self.scores[name].items()})

    def worst(self, suite: list[str]) -> Scores:
        """For each image and metric, the attack that did best: lowest MSE, highest everything else."""
        self.scores["worst"] = {}
        for metric in self.scores[suite[0]]:
            stacked = torch.stack([self.scores[name][metric] for name in suite])
            higher = metric not in METRICS or METRICS[metric].higher_is_better
            self.scores["worst"][metric] = stacked.amax(0) if higher else stacked.amin(0)
        return self.summary("worst")

    def per_class(self, names: tuple[str, ...]) -> dict[str, dict[str, float]]:
        """Worst-case means for each class, and how many images they rest on."""
        table = {}
        for label, name in enumerate(names):
            mine = self.truth.y == label
            if mine.any():
                means = {metric: values[mine].mean().item() for metric, values in self.scores["worst"].items()}
                table[name] = means | {"n": int(mine.sum())}
        return table

    def per_image(self) -> dict[str, np.ndarray]:
        """Every score of every image, for later statistics."""
        return {f"{name}/{metric}": v.numpy() for name, found in self.scores.items() for metric, v in found.items()}


def training_flags(model: Split, guard: Defence) -> list[str]:
    """What the defences say of themselves, and which of their penalties could fall without the encoder."""
    fallen = {} if model.record is None else model.record.surrogate_only
    links = {type(link).__name__.lower(): link for link in guard.links}
    doubts = [
        doubt
        for name, fall in fallen.items()
        for doubt in caveat(name, fall, getattr(links[name], "bounds_information", False))
    ]
    return guard.caveats + doubts


def stacked(epochs: list[dict[str, list[float]]]) -> dict[str, np.ndarray]:
    """Name → one row per epoch; epochs without a reading are rows of NaN."""
    lengths = {name: len(vector) for epoch in epochs for name, vector in epoch.items()}
    return {
        name: np.array([epoch.get(name, [np.nan] * length) for epoch in epochs], dtype=np.float32)
        for name, length in lengths.items()
    }


def costs(model: Split, targets: Tensor) -> dict[str, float]:
    """What training took, the size of the halves, and the bytes that one image sends over the wire."""
    return {
        **({} if model.record is None else model.record.cost),
        "params_device": sum(p.numel() for p in model.encoder.parameters()),
        "params_cloud": sum(p.numel() for p in model.decoder.parameters()),
        "bytes": targets[0].numel() * targets.element_size(),
    }


def gallery(truth: Images, guesses: dict[str, Reconstruction]) -> dict[str, np.ndarray]:
    """The first few pictures: the originals and every guess."""
    rows = {"original": truth[:SHOWN].x.numpy()}
    for name, guess in guesses.items():
        pictures = (guess.images[:SHOWN].cpu().clamp(0, 1) * 255).round().to(torch.uint8)
        rows[name] = pictures.permute(0, 2, 3, 1).numpy()
    return rows


def describe_experiment(model: Split, guard: Defence, data: Data, config: AuditConfig) -> dict[str, Any]:
    """The configuration of something that was put together by hand."""
    return {
        "data": {"name": data.name, **data.draw},
        "model": model.spec or {"backbone": "custom"},
        "defence": describe(guard),
        "audit": {"suite": config.suite, "images": config.images, "seed": config.seed},
    }


def current_commit() -> str:
    """The commit this code was run from, or an empty string outside a checkout."""
    here = Path(__file__).parent
    try:
        found = subprocess.run(["git", "-C", str(here), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip()
