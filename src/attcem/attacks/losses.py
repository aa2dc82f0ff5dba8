"""What a decoder may minimise."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor

from attcem.maths.similarity import structural_similarity


def squared(guess: Tensor, x: Tensor) -> Tensor:
    """Mean squared error."""
    return F.mse_loss(guess, x)


def squared_and_structural(guess: Tensor, x: Tensor) -> Tensor:
    """MSE + (1 − SSIM) / 20: about equal parts where decoders end."""
    return F.mse_loss(guess, x) + (1 - structural_similarity(guess, x).mean()) / 20


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"mse": squared, "mse_ssim": squared_and_structural}
