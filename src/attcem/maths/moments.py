"""Sums, softmaxes, weighted means and variances of every class and slot at once."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

Segment = Int64[Tensor, " n"]  # which segment each row belongs to
Tokens = Float[Tensor, "n *t d"]
Responsibilities = Float[Tensor, "n *t k"]

EMPTY = 1e-20  # a slot with less mass than this holds nothing: its moments are zero, and so are their gradients


@dataclass(frozen=True)
class Moments:
    """What each slot of each segment holds: mass Σ r, mean, and variance of every feature, or full covariance."""

    mass: Float[Tensor, "c k"]
    mu: Float[Tensor, "c k d"]
    var: Float[Tensor, "c k *d"]


def segment_sum(values: Float[Tensor, " n *rest"], segment: Segment, segments: int) -> Float[Tensor, " c *rest"]:
    """Σ of the rows that belong to each segment; an empty segment sums to zero."""
    return values.new_zeros(segments, *values.shape[1:]).index_add(0, segment, values)


def segment_count(segment: Segment, segments: int) -> Int64[Tensor, " c"]:
    """How many rows belong to each segment."""
    return segment.new_zeros(segments).index_add(0, segment, torch.ones_like(segment))


def segment_softmax(logits: Float[Tensor, " n *rest"], segment: Segment, segments: int) -> Float[Tensor, " n *rest"]:
    """Weights that sum to 1 inside each segment: exp(l_i − max_c) / Σ_c exp(l_j − max_c)."""
    index = segment.reshape(-1, *[1] * (logits.ndim - 1)).expand_as(logits)
    largest = logits.detach().new_full((segments, *logits.shape[1:]), -torch.inf)
    largest = largest.scatter_reduce(0, index, logits.detach(), "amax")
    # The largest term of a segment is exp(0), so a segment with rows never divides by less than 1.
    weight = (logits - largest[segment]).exp()
    return weight / segment_sum(weight, segment, segments)[segment]


def moments(
    x: Tokens, segment: Segment, segments: int, resp: Responsibilities | None = None, *, unbiased: bool = False
) -> Moments:
    """Moments of x in every segment and slot, tokens of a sample counted in the sample's segment.

    μ = Σ r x / Σ r;  σ² = Σ r (x−μ)² / Σ r, or over Σ r − Σ r² / Σ r when unbiased (M − 1 for one-hot r). Without
    `resp` a segment is one slot. The mean comes first and the deviations after it, so a large common offset costs no
    digits. Memory is that of x and of the result: no slot's deviations are kept for the backward pass.
    """
    x = with_token_axis(x)
    resp = torch.ones_like(x[..., :1]) if resp is None else with_token_axis(resp)
    mass = segment_sum(resp.sum(1), segment, segments)
    share = 1 / torch.where(mass > EMPTY, mass, torch.inf)
    total, spread = Sums.apply(x, resp, segment, share.detach())
    mu = share.unsqueeze(-1) * total
    if unbiased:
        freedom = mass - share * segment_sum(resp.square().sum(1), segment, segments)
        # One sample, however weighted, has no freedom but for rounding: its variance is zero, not 0/0.
        share = 1 / torch.where(freedom > 8 * torch.finfo(x.dtype).eps * mass, freedom, torch.inf)
    return Moments(mass, mu, share.unsqueeze(-1) * spread)


def covariance(x: Tokens, segment: Segment, segments: int, resp: Responsibilities | None = None) -> Moments:
    """As `moments`, with full covariances [c k d d] for variances. Needs n·d² numbers on the way: for few features."""
    x = with_token_axis(x)
    resp = torch.ones_like(x[..., :1]) if resp is None else with_token_axis(resp)
    mass = segment_sum(resp.sum(1), segment, segments)
    share = 1 / torch.where(mass > EMPTY, mass, torch.inf)
    mu = share.unsqueeze(-1) * segment_sum(resp.transpose(1, 2) @ x, segment, segments)
    spread = []
    for k in range(resp.shape[-1]):
        deviation = x - mu[segment, k].unsqueeze(1)
        spread.append(segment_sum((resp[..., k : k + 1] * deviation).transpose(1, 2) @ deviation, segment, segments))
    return Moments(mass, mu, share[..., None, None] * torch.stack(spread, 1))


def merge(old: Moments, new: Moments, keep: float) -> Moments:
    """What `keep` parts of the old and 1 − keep parts of the new hold together (Chan, Golub, LeVeque 1979).

    The variances, or covariances, of both parts count by their mass, and so does the distance of their means.
    """
    before, after = keep * old.mass, (1 - keep) * new.mass
    mass = before + after
    share = (after / torch.where(mass > EMPTY, mass, torch.inf)).unsqueeze(-1)
    apart = new.mu - old.mu
    full = new.var.ndim > new.mu.ndim
    between = apart.unsqueeze(-1) * apart.unsqueeze(-2) if full else apart.square()
    weight = share.unsqueeze(-1) if full else share
    return Moments(mass, old.mu + share * apart, (1 - weight) * old.var + weight * (new.var + (1 - weight) * between))


def with_token_axis(x: Float[Tensor, "n *t d"]) -> Float[Tensor, "n tokens d"]:
    return x.reshape(len(x), math.prod(x.shape[1:-1]), x.shape[-1])


class Sums(torch.autograd.Function):
    """Σ r x and Σ r (x−μ)² of every segment and slot, with the products computed again in the backward pass.

    μ counts as a constant: at the weighted mean the derivative through it is −2 Σ r (x−μ) = 0.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tokens, resp: Responsibilities, segment: Segment, share: Float[Tensor, "c k"]
    ) -> tuple[Float[Tensor, "c k d"], Float[Tensor, "c k d"]]:
        """One slot after the other, each over all segments at once; `share` is 1 / Σ r."""
        total = x.new_empty(*share.shape, x.shape[-1])
        mu, spread = torch.empty_like(total), torch.empty_like(total)
        for k in range(resp.shape[-1]):
            weight = resp[..., k : k + 1]
            total[:, k] = segment_sum((weight * x).sum(1), segment, len(share))
            mu[:, k] = share[:, k : k + 1] * total[:, k]
            deviation = x - mu[segment, k].unsqueeze(1)
            spread[:, k] = segment_sum((weight * deviation.square()).sum(1), segment, len(share))
        ctx.save_for_backward(x, resp, segment, mu)
        return total, spread

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any, to_total: Float[Tensor, "c k d"], to_spread: Float[Tensor, "c k d"]
    ) -> tuple[Tensor, Tensor, None, None]:
        """r (g + 2 (x−μ) h) to the samples, Σ_d x g + (x−μ)² h to the responsibilities."""
        x, resp, segment, mu = ctx.saved_tensors
        to_x, to_resp = torch.zeros_like(x), torch.empty_like(resp)
        for k in range(resp.shape[-1]):
            deviation = x - mu[segment, k].unsqueeze(1)
            pull = deviation * to_spread[segment, k].unsqueeze(1)
            push = to_total[segment, k].unsqueeze(1)
            to_x += resp[..., k : k + 1] * (push + 2 * pull)
            to_resp[..., k] = (x * push + deviation * pull).sum(-1)
        return to_x, to_resp, None, None
