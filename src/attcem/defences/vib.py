"""The variational information bottleneck on a given latent: noise of a learned size in every channel."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attcem.defences.base import WEIGHTED, Defence, Stage
from attcem.types import Batch, Latent, Released


def gaussian_divergence(mean: Float[Tensor, "*n"], log_deviation: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """KL( N(m, e^{2s}) ‖ N(0, 1) ) = ½ (m² + e^{2s} − 1) − s, in nats, entry by entry."""
    return 0.5 * (mean.square() + (2 * log_deviation).exp() - 1) - log_deviation


class VIB(Defence):
    """Adds noise of a learned size to every channel, and penalises what still gets through.

    z = ẑ + e^s ⊙ ε, ε ~ N(0, I);  L = KL( N(ẑ, e^{2s}) ‖ N(0, I) ) in nats per dimension, on average never below
    I(x;z) per dimension (Alemi et al. 2017). One s for each channel of a map, for each entry of tokens or a vector.
    What is released has this very noise, so s lowers the penalty only by hiding more; task and penalty pull at s with
    the weights that they have in the encoder.

    Args:
        lam: weight of the penalty's gradient, in the encoder and in s; β · d of the published form.
        start: deviation of the noise before training.
        warmup: epochs before the penalty starts; until then the task alone decides how large the noise is.
    """

    equation = "z = ẑ + e^s ⊙ ε,   L = KL( N(ẑ, e^2s) ‖ N(0, I) )"
    stage = Stage.NOISE
    needs = frozenset({WEIGHTED})
    distribution = "normal"
    log_deviation: nn.Parameter

    def __init__(self, lam: float = 1.0, start: float = 0.1, warmup: int = 0) -> None:
        super().__init__()
        if not 0 < start < math.inf:
            raise ValueError(f"vib start={start} is no deviation to learn from: give something like 0.1")
        self.lam, self.start, self.warmup = lam, start, warmup

    def setup(self, *, latent: Sequence[int], classes: int, sigma: float) -> None:
        shape = (latent[0], 1, 1) if len(latent) == 3 else tuple(latent)
        self.log_deviation = nn.Parameter(torch.full(shape, math.log(self.start)))

    @property
    def sigma(self) -> float:  # type: ignore[override]
        """The smallest deviation of any channel, as it is now: more noise than that can only hide more.

        Zero before setup: a penalty that is set up for the chain's noise must not count on what may still shrink.
        """
        return self.log_deviation.min().exp().item() if hasattr(self, "log_deviation") else 0.0

    def release(self, z: Latent, noise: Tensor | None = None) -> Released:
        return z + self.log_deviation.to(z.dtype).exp() * self.drawn(z, noise)

    def penalty(self, batch: Batch) -> Float[Tensor, ""]:
        z = batch.z.to(torch.promote_types(batch.z.dtype, torch.float32))
        if batch.watched:
            deviation = self.log_deviation.detach().exp()
            batch.readings.update(deviation=deviation.mean(), least_deviation=deviation.min())
        return gaussian_divergence(z, self.log_deviation.to(z.dtype).expand_as(z)).mean()
