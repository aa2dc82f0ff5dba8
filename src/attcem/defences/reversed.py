"""A reversed adversary: a decoder descends on its error, the encoder climbs, from one and the same backward pass."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from attcem.defences.adversary import Adversary
from attcem.defences.base import Defence
from attcem.types import Batch, Released

KEEP = 0.99  # share of the running moments that stays at each step


def log_error(guess: Float[Tensor, "b c h w"], x: Float[Tensor, "b c h w"]) -> Float[Tensor, ""]:
    """log mean (D(z) − x)²: a factor counts the same wherever the error stands."""
    return (guess - x).square().mean().log()


class Reversed(Defence):
    """Trains the encoder to raise the error of a decoder that learns to invert what is released.

    ℓ = log mean (D(z) − x)²; the adversary D takes an Adam step down ∂ℓ/∂D, the encoder gets −λ ∂ℓ/∂ẑ of the same
    backward pass. D sees z standardised by running moments: an encoder gains nothing by scaling. How D fares says
    nothing about an attacker who comes later and stays longer: that is for the audit.

    Args:
        lam: weight of the penalty's gradient in the encoder.
        channels: width of the adversary.
        blocks: residual blocks of the adversary.
        lr: learning rate of the adversary.
        warmup: epochs in which only the adversary learns.
    """

    equation = "ℓ = log mean (D(z) − x)²,   ∂L/∂ẑ = −λ ∂ℓ/∂ẑ"
    mean: Tensor
    var: Tensor

    def __init__(
        self, lam: float = 0.15, channels: int = 64, blocks: int = 2, lr: float = 2e-3, warmup: int = 1
    ) -> None:
        super().__init__()
        if channels < 1 or blocks < 0 or not lr > 0:
            raise ValueError(
                f"channels={channels}, blocks={blocks} and lr={lr} make no adversary that learns: give at least 1 "
                "channel, 0 blocks, and a learning rate above 0, such as 2e-3"
            )
        self.lam, self.channels, self.blocks, self.lr, self.warmup = lam, channels, blocks, lr, warmup
        self.pending: Float[Tensor, " n"] | None = None

    def setup(self, *, latent: Sequence[int], classes: int, sigma: float) -> None:
        self.adversary = Adversary(latent, self.channels, self.blocks, self.lr)
        shape = (latent[0], 1, 1) if len(latent) == 3 else tuple(latent)
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("var", torch.ones(shape))

    def standardise(self, released: Released) -> Released:
        return (released - self.mean) / (self.var + 1e-5).sqrt()

    def penalty(self, batch: Batch) -> Float[Tensor, ""]:
        """−ℓ on a fresh release; the adversary's own gradient waits for `observe`."""
        with torch.autocast(batch.z.device.type, enabled=False):
            seen = self.standardise(self.release_all(batch.z).to(self.mean.dtype))
            loss, self.pending, pull = self.adversary.gradients(seen.detach(), batch.x, log_error)
        if batch.watched:
            batch.readings["adversary_mse"] = loss.exp()
        return -(loss + ((seen - seen.detach()) * pull).sum())

    @torch.no_grad()
    def observe(self, batch: Batch) -> None:
        """The adversary takes its step: from the penalty's pass, or from one of its own where there was none."""
        released = self.release_all(batch.z.to(self.mean.dtype))
        gradient, self.pending = self.pending, None
        if gradient is None:
            gradient = self.adversary.gradients(self.standardise(released), batch.x, log_error)[1]
        self.adversary.step(gradient)
        self.remember(released)

    def remember(self, released: Released) -> None:
        var, mean = torch.var_mean(released, [0] if self.mean.ndim < 3 else [0, 2, 3], correction=0)
        if mean.isfinite().all() and var.isfinite().all():
            self.mean.lerp_(mean.view_as(self.mean), 1 - KEEP)
            self.var.lerp_(var.view_as(self.var), 1 - KEEP)
