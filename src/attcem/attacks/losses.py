"""What a decoder may minimise."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor

from attcem.maths.similarity import structural_similarity


def squared_and_structural(guess: Tensor, x: Tensor) -> Tensor:
    """MSE + (1 − SSIM) / 20: about equal parts where decoders end."""
    return F.mse_loss(guess, x) + (1 - structural_similarity(guess, x).mean()) / 20


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"mse": F.mse_loss, "mse_ssim": squared_and_structural}
