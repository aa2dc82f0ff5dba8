"""Regression on what the device releases for public images: what it learns from, and its closed form."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from attcem.attacks.pairs import hold_out
from attcem.data.loader import in_order
from attcem.types import Images, Oracle, Released, View

STRENGTHS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""Ridge strengths to choose from; 1 weighs as much as a standardised feature."""
ROWS, WIDE, BUDGET = 16_384, 4096, 2**27
"""Most releases to learn from; the same for latents of more than WIDE values; most values altogether."""

Features = Callable[[Released], Float[Tensor, "b d"]]


def values(released: Released) -> Float[Tensor, "b d"]:
    return released.flatten(1)


@dataclass(frozen=True)
class Examples:
    """What fresh releases of public images look like, and for each row which image it was."""

    features: Float[Tensor, "n d"]
    of: Int64[Tensor, " n"]


@dataclass(frozen=True)
class TrainingSet:
    """What a probe learns from: standardised releases of public images, some of them held out to choose by."""

    own: Examples
    held_out: Examples
    features: Features
    mean: Float[Tensor, " d"]
    scale: Float[Tensor, " d"]

    @classmethod
    def of(
        cls, view: View, seed: int, features: Features = values, *, share: float = 0.2, most: int = ROWS
    ) -> TrainingSet:
        """Query the device for all public images that there is room for, more than once where it adds noise."""
        if view.oracle is None:
            raise ValueError(
                "a regression learns from queries: choose a threat model that grants them, query or white_box"
            )
        size = view.targets[0].numel()
        rows = min(most, ROWS if size <= WIDE else WIDE, max(64, BUDGET // size))
        numbered = Images(view.public.x, torch.arange(len(view.public)))
        own, held_out = (
            examples(view.oracle, part, most, features, view.targets.device)
            for part, most in zip(hold_out(numbered, seed, share=share), (rows, rows // 4), strict=True)
        )
        mean, spread = own.features.mean(0), own.features.std(0)
        scale = torch.where(spread > 1e-6 * mean.abs().clamp_min(1), spread, 1)
        for part in (own, held_out):
            part.features.sub_(mean).div_(scale)
        return cls(own, held_out, features, mean, scale)

    def read(self, released: Released) -> Float[Tensor, "b d"]:
        return (self.features(released) - self.mean) / self.scale


def examples(oracle: Oracle, images: Images, most: int, features: Features, device: torch.device) -> Examples:
    """At most so many releases: each image once, and again as long as there is room and its release varies."""
    images = images[:most]
    recording = oracle.record(x for x, _ in in_order(images, device=device))
    index = torch.arange(len(images), device=device)
    varies = not torch.equal(recording(index[:8]), recording(index[:8]))
    index = index.repeat(most // len(images) if varies else 1)
    return Examples(torch.cat([features(recording(part)) for part in index.split(256)]), images.y.to(device)[index])


def principal_axes(x: Float[Tensor, "n d"], most: int) -> Float[Tensor, "d k"]:
    """The axes along which x, of mean 0, varies most, with one factor for all by which x varies by 1 on average."""
    count = max(1, min(most, *x.shape))
    _, size, axes = torch.pca_lowrank(x, q=count, center=False, niter=4)
    return axes * (math.sqrt(len(x) * count) / size.norm().clamp_min(1e-6))


def ridge(
    features: Float[Tensor, "n d"], wanted: Float[Tensor, "n p"], strengths: Sequence[float]
) -> Float[Tensor, "s d p"]:
    """(XᵀX + s·n·I)⁻¹ XᵀY for every strength s, through XXᵀ where there are more features than rows.

    In double precision, part by part: a small strength would drown in the rounding of a large sum.
    """
    rows, size = features.shape
    wide = size > rows
    across = features.T if wide else features
    gram = product(across, across)
    right = wanted.double() if wide else product(features, wanted)
    solutions = []
    for strength in strengths:
        raised = gram + strength * rows * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
        solved = torch.cholesky_solve(right, torch.linalg.cholesky(raised)).to(features.dtype)
        solutions.append(features.T @ solved if wide else solved)
    return torch.stack(solutions)


def product(a: Float[Tensor, "n i"], b: Float[Tensor, "n j"]) -> Float[Tensor, "i j"]:
    """AᵀB in double precision, with only a part of either in double precision at a time."""
    total = torch.zeros(a.shape[1], b.shape[1], dtype=torch.double, device=a.device)
    for some, other in zip(a.split(1024), b.split(1024), strict=True):
        total.addmm_(some.double().T, other.double())
    return total
