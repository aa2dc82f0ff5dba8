"""The rate bound as a penalty: an upper limit on what the latent tells, which attention can only tighten."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from attcem.defences.assignments import ASSIGNMENTS, MomentMemory
from attcem.defences.base import NOISE
from attcem.defences.surrogate import Attentive, Insight, Part
from attcem.layers import TOKENS, features
from attcem.maths import Moments, covariance, diagonal_rate, entropy, full_rate, gram_rate, moments, widen
from attcem.maths.moments import segment_count, segment_sum
from attcem.naming import look_up
from attcem.types import Batch

MOST_CHANNELS = 256  # a full covariance per sample is made on the way: beyond this it would dwarf the latents

Slots = tuple[Float[Tensor, "c k"], Float[Tensor, "c k"]]  # mass and nats of every class's slots


def diagonal(bound: Bound, part: Part, x: Float[Tensor, "n t d"], resp: Float[Tensor, "n t k"]) -> Slots:
    """½ Σ_d log(1 + σ²_kd/σ_n²), every feature by itself."""
    found = bound.recall(moments(x, part.y, part.classes, resp), part)
    return found.mass, diagonal_rate(found.var, bound.sigma_n)


def channel(bound: Bound, part: Part, x: Float[Tensor, "n t d"], resp: Float[Tensor, "n t k"]) -> Slots:
    """½ log det(I + Σ_k/σ_n²), Σ_k over channels, every position of the class's latents being a token."""
    found = bound.recall(covariance(widen(x), part.y, part.classes, widen(resp)), part)
    return found.mass.to(x.dtype), full_rate(found.var, bound.sigma_n).to(x.dtype)


def gram(bound: Bound, part: Part, x: Float[Tensor, "n 1 d"], resp: Float[Tensor, "n 1 k"]) -> Slots:
    """½ log det(I + Σ_k/σ_n²) of the whole latent, through the samples' inner products."""
    x, resp = x.squeeze(1), resp.squeeze(1)
    found = moments(x, part.y, part.classes, resp)
    share = (resp / found.mass[part.y].clamp_min(1e-20)).clamp_min(1e-20).sqrt()
    rates = [
        gram_rate(share[:, k : k + 1] * (x - found.mu[part.y, k]), part.y, part.classes, bound.sigma_n)
        for k in range(resp.shape[1])
    ]
    return found.mass, torch.stack(rates, 1)


RATES: Mapping[str, Callable[..., Slots]] = {"diag": diagonal, "channel": channel, "gram": gram}


class Bound(Attentive):
    """Penalises an upper bound on the information I(x;z) in what is released, which attention can only tighten.

    L = ( H(π) − E H(r) + Σ_k π_k · ½ log det(I + Σ_k/σ_n²) ) / D: the rate bound (docs/theory.md#the-rate-bound) over
    the slots of every class, in nats per latent dimension; Σ_k is the covariance of the clean, un-normalised latents
    under r. Attention decides r and nothing else, and the bound holds for every r. With positions as tokens, what is
    said of one position counts once for each of them. A class with one sample is left out, unless there is a memory to
    keep it in.

    Args:
        lam: weight of the penalty's gradient in the encoder.
        assign: class (r is the class, nothing to learn), gated (gated attention chooses slots inside the class) or slot
            (slot attention over the class's tokens).
        cov: diag (every dimension by itself, cheapest), channel (full over channels, positions pooled) or gram (full
            over the whole latent, tightest on what a batch holds).
        tokens: what r is decided for: flat, pooled (both for the whole sample), spatial or project (each position).
        width: features of projected tokens.
        slots: number of slots in each class.
        iters: rounds of slot attention.
        memory: share of the moments that is kept from step to step; 0 takes every batch by itself.
        warmup: epochs before it starts.
    """

    equation = "I(x;z) ≤ H(π) − E H(r) + Σ_k π_k · ½ log det( I + Σ_k / σ² )"
    needs = frozenset({NOISE})
    bounds_information = True

    def __init__(
        self,
        lam: float = 1.0,
        assign: str = "class",
        cov: str = "diag",
        tokens: str = "flat",
        width: int = 128,
        slots: int = 8,
        iters: int = 3,
        memory: float = 0.0,
        warmup: int = 0,
    ) -> None:
        super().__init__()
        look_up("assign", assign, ASSIGNMENTS)
        self.attentive = assign != "class"
        self.rate = look_up("cov", cov, RATES)
        look_up("tokens", tokens, TOKENS)
        if not 0 <= memory < 1:
            raise ValueError(f"memory={memory} is no share: give 0 for none, or something like 0.9")
        if cov == "gram" and (memory or tokens in ("spatial", "project")):
            raise ValueError(
                'cov="gram" looks at whole latents of one batch: use memory=0 and tokens="flat" or "pooled", or '
                'cov="diag" or "channel"'
            )
        self.lam, self.assign, self.cov, self.memory, self.warmup = lam, assign, cov, memory, warmup
        self.tokens, self.width, self.slots, self.iters = tokens, width, slots, iters

    def build(self, latent: tuple[int, ...]) -> None:
        if self.cov == "channel" and features(latent) > MOST_CHANNELS:
            raise ValueError(
                f'cov="channel" is for at most {MOST_CHANNELS} channels, and this latent has {features(latent)}: '
                'use cov="gram" or "diag", or a bottleneck'
            )
        super().build(latent)
        by_position = self.cov == "channel" or self.tokens in ("spatial", "project")
        self.samples = TOKENS["spatial" if by_position else "flat"](latent, self.width)
        self.remembered = None
        if self.memory:  # which will meet the second sample of a class
            shape = self.classes, self.slots if self.attentive else 1, self.samples.width
            self.remembered = MomentMemory(*shape, self.memory, full=self.cov == "channel")
            self.least = 1

    def attend_to(self, width: int) -> None:
        self.assigner = ASSIGNMENTS[self.assign](width, self.slots, self.iters)

    def losses(self, part: Part) -> tuple[Float[Tensor, " c"], Insight]:
        x = self.samples(part.z)
        resp = self.assigner(self.tokenise(part.z), part.y, part.classes)
        mass, rate = self.rate(self, part, x, resp.expand(-1, x.shape[1], -1))
        pi = mass / mass.sum(1, keepdim=True)
        uncertain = segment_sum(entropy(resp).mean(1), part.y, part.classes) / segment_count(part.y, part.classes)
        told = resp.shape[1] * (entropy(pi) - uncertain)
        losses = (told + x.shape[1] * (pi * rate).sum(1)) / part.z[0].numel()
        if self.remembered is not None and not losses.isfinite().all():
            self.remembered.pending = None
        return losses, Insight(resp=resp)

    def recall(self, found: Moments, part: Part) -> Moments:
        return found if self.remembered is None else self.remembered.recall(found, part.present)

    def total(self, part: Part, losses: Float[Tensor, " c"]) -> Float[Tensor, ""]:
        """Σ π_c L_c + H(π)/D: the classes' own shares tell something, too."""
        share = part.p / part.p.sum()
        return (share * losses).sum() + entropy(share) / part.z[0].numel()

    def nats(self, batch: Batch) -> Float[Tensor, ""]:
        """The bound in nats, for the batch as if it were all the data, without samples alone in their class.

        A class of M samples spans M − 1 dimensions: below the latent's dimension, `gram` says less of a batch than it
        would of the data set. A number to publish needs the moments of the whole set.
        """
        return batch.z[0].numel() * self.value(batch)

    def observe(self, batch: Batch) -> None:
        if self.remembered is not None:
            self.remembered.commit()

    def read(self, part: Part, losses: Float[Tensor, " c"], insight: Insight) -> dict[str, Tensor]:
        return super().read(part, losses, insight) | {"rate_nats": part.z[0].numel() * self.total(part, losses)}
