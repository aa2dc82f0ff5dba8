"""The rate bound as a penalty: an upper limit on what the latent tells, class by class."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from attcem.defences.base import Defence
from attcem.maths import (
    covariance,
    diagonal_rate,
    entropy,
    full_rate,
    gram_rate,
    moments,
    rate_bound,
    segment_count,
    widen,
)
from attcem.naming import look_up
from attcem.types import Batch, Latent

MOST_CHANNELS = 256
"""A full covariance per sample is made on the way: beyond this it would dwarf the latents."""

Rate = Callable[[Latent, Int64[Tensor, " b"], int, float], Float[Tensor, " c"]]
"""Clean latents, their classes, number of classes, noise → nats that each class may carry beyond its name."""


def diagonal(z: Latent, y: Int64[Tensor, " b"], classes: int, sigma: float) -> Float[Tensor, " c"]:
    """½ Σ_d log(1 + σ²_cd/σ_n²), every latent dimension by itself."""
    return diagonal_rate(moments(z.flatten(1), y, classes).var.squeeze(1), sigma)


def channel(z: Latent, y: Int64[Tensor, " b"], classes: int, sigma: float) -> Float[Tensor, " c"]:
    """tokens · ½ log det(I + Σ_c/σ_n²), Σ_c over channels, every position of the class's latents being a token."""
    tokens = z.flatten(2).transpose(1, 2) if z.ndim > 2 else z.unsqueeze(1)
    return tokens.shape[1] * full_rate(covariance(widen(tokens), y, classes), sigma).to(z.dtype)


def gram(z: Latent, y: Int64[Tensor, " b"], classes: int, sigma: float) -> Float[Tensor, " c"]:
    """½ log det(I + Σ_c/σ_n²) of the whole latent, through the samples' inner products."""
    z = z.flatten(1)
    found = moments(z, y, classes)
    return gram_rate((z - found.mu[y, 0]) / found.mass[y].sqrt(), y, classes, sigma)


RATES: Mapping[str, Rate] = {"diag": diagonal, "channel": channel, "gram": gram}


class Bound(Defence):
    """Penalises an upper bound on the information I(x;z) that the released latent carries (needs Noise).

    L = ( H(π) + Σ_c π_c · ½ log det(I + Σ_c/σ_n²) ) / D: the rate bound of maths §1 with r = the class, in nats per
    latent dimension; Σ_c is the covariance of the clean latents of class c. A class with fewer than two samples in the
    batch is left out.

    Args:
        lam: weight of the penalty's gradient in the encoder.
        cov: diag (every dimension by itself, cheapest), channel (full over channels, positions pooled) or gram (full
            over the whole latent, tightest).
        warmup: epochs before it starts.
    """

    needs_noise = True

    def __init__(self, lam: float = 1.0, cov: str = "diag", warmup: int = 0) -> None:
        super().__init__()
        self.rate = look_up("cov", cov, RATES)
        self.lam, self.cov, self.warmup = lam, cov, warmup
        self.lost = 0
        """How many batches had a penalty that was not finite, and were left unpenalised."""

    def setup(self, *, latent: Sequence[int], classes: int, sigma: float) -> None:
        """Remember the noise, without which nothing is bounded."""
        if not sigma > 0:
            raise ValueError(
                f"the bound needs noise, but the chain's sigma is {sigma}: without it any latent can carry everything; "
                'add Noise to the chain, as in Noise(sigma=0.1) + create_defence("bound")'
            )
        if self.cov == "channel" and latent[0] > MOST_CHANNELS:
            raise ValueError(
                f'cov="channel" is for at most {MOST_CHANNELS} channels, and this latent has {latent[0]}: '
                'use cov="gram" or "diag", or a bottleneck'
            )
        self.classes, self.sigma_n = classes, sigma

    def nats(self, batch: Batch) -> Float[Tensor, ""]:
        """The bound in nats, for the batch as if it were all the data, without samples alone in their class.

        A class of M samples spans M − 1 dimensions: below the latent's dimension, `gram` says less of a batch than it
        would of the data set. A number to publish needs the moments of the whole set.
        """
        count = segment_count(batch.y, self.classes)
        kept = (count >= 2)[batch.y]
        if not kept.any():
            return nothing(batch.z)
        # Only classes that are kept cost anything: of 10 or of 600, a batch holds at most one per two samples.
        present, y = batch.y[kept].unique(return_inverse=True)
        z = batch.z[kept].to(torch.promote_types(batch.z.dtype, torch.float32))
        pi = count[present].to(z.dtype) / len(y)
        with torch.autocast(z.device.type, enabled=False):
            return rate_bound(entropy(pi), pi, self.rate(z, y, len(present), self.sigma_n))

    def penalty(self, batch: Batch) -> Float[Tensor, ""]:
        """Nats per latent dimension; zero where that is not finite."""
        nats = self.nats(batch)
        if not nats.isfinite():
            self.lost += 1
            return nothing(batch.z)
        return nats / math.prod(batch.z.shape[1:])


def nothing(z: Latent) -> Float[Tensor, ""]:
    """A zero that keeps the graph: its gradient is zero even where the latent is not a number."""
    return z.masked_fill(torch.ones_like(z, dtype=torch.bool), 0.0).sum()
