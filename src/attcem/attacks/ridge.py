"""What is linear and has a closed form: principal axes, and ridge regression."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

STRENGTHS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""Ridge strengths to choose from; 1 weighs as much as a standardised feature."""


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
