"""Random draws that do not depend on how a tensor lies in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float
from torch import Tensor


def gaussian_like(z: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """ε ~ N(0, I) of the same shape, drawn row by row.

    `torch.randn_like` keeps the layout and draws along it: another order of the same numbers, and on a processor ten
    times as slowly where channels come last.
    """
    return torch.randn(z.shape, dtype=z.dtype, device=z.device)


def laplace_like(z: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """Draws of density ½ e^{−|t|}: the difference of two exponential ones, which is never infinite."""
    return torch.empty_like(z).exponential_() - torch.empty_like(z).exponential_()


def uniform_like(z: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """Draws from [0, 1), row by row."""
    return torch.rand(z.shape, dtype=z.dtype, device=z.device)


DISTRIBUTIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "normal": gaussian_like,
    "laplace": laplace_like,
    "uniform": uniform_like,
}
"""What a release may draw from: N(0, 1), ½ e^{−|t|}, or the unit interval."""
