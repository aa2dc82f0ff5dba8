"""Random draws that do not depend on how a tensor lies in memory."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def gaussian_like(z: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """ε ~ N(0, I) of the same shape, drawn row by row.

    `torch.randn_like` keeps the layout and draws along it: another order of the same numbers, and on a processor ten
    times as slowly where channels come last.
    """
    return torch.randn(z.shape, dtype=z.dtype, device=z.device)
