"""What the range of latents betrays: the squashing at the end of an encoder, which is undone."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


def identity(z: Tensor) -> Tensor:
    """Nothing to undo."""
    return z


def undo_sigmoid(z: Tensor) -> Tensor:
    """Logits, as far as single precision tells them apart."""
    return torch.logit(z, eps=1e-7)


def undo_tanh(z: Tensor) -> Tensor:
    """The same for values between -1 and 1."""
    return undo_sigmoid((z + 1) / 2)


def straighten(latents: Float[Tensor, " n *latent"]) -> Callable[[Tensor], Tensor]:
    """What undoes the squashing that the observed range betrays: a saturated value still tells its pre-activation."""
    low, high = latents.min(), latents.max()
    if low >= 0 and 0.5 < high <= 1:
        return undo_sigmoid
    return undo_tanh if low >= -1 and 0.5 < high <= 1 else identity
