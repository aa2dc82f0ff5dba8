"""How a decoder errs: along few directions much, along most of them little."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attcem.attacks.base import PerImage, Pictures

LEAST = 1e-6  # variance of a pixel below which nothing is told apart
EXACT, ROUGHLY = 4096, 256
"""Pixels up to which the covariance is decomposed whole; beyond, so many axes are found without it."""


@dataclass(frozen=True)
class ErrorSpectrum:
    """Errors as a Gaussian: variance λ_k along axis u_k, and the same s² along every direction that is left."""

    axes: Float[Tensor, "d k"]
    variance: Float[Tensor, " k"]
    left: float

    @classmethod
    def of(cls, errors: Pictures, most: int = 2048) -> ErrorSpectrum:
        """The principal axes of these errors, no more than a quarter as many as there are errors."""
        flat = errors.flatten(1)
        pixels = flat.shape[1]
        count = min(most if pixels <= EXACT else ROUGHLY, len(flat) // 4, pixels - 1)
        total = flat.square().sum() / len(flat)
        if count < 1:
            return cls(flat.new_zeros(pixels, 0), flat.new_zeros(0), max(LEAST, total.item() / pixels))
        if pixels <= EXACT:
            variance, axes = (part[..., -count:] for part in torch.linalg.eigh(flat.T @ flat / len(flat)))
        else:
            _, size, axes = torch.pca_lowrank(flat, q=count, center=False, niter=4)
            variance = size.square() / len(flat)
        return cls(axes, variance.clamp_min(LEAST), max(LEAST, (total - variance.sum()).item() / (pixels - count)))

    @classmethod
    def even(cls, like: Pictures) -> ErrorSpectrum:
        """Variance 1 everywhere."""
        return cls(like.new_zeros(like[0].numel(), 0), like.new_zeros(0), 1.0)

    def __call__(self, away: Pictures) -> PerImage:
        """How unlikely such errors are: Σ_k (u_k·e)² / λ_k + (‖e‖² − Σ_k (u_k·e)²) / s²."""
        flat = away.flatten(1)
        along = (flat @ self.axes).square()
        return (along / self.variance).sum(1) + (flat.square().sum(1) - along.sum(1)) / self.left
