"""Sums and softmaxes inside segments: every class at once, without a loop over classes."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int64
from torch import Tensor


def segment_sum(
    values: Float[Tensor, " n *rest"], segment: Int64[Tensor, " n"], segments: int
) -> Float[Tensor, " c *rest"]:
    """Σ of the rows that belong to each segment; an empty segment sums to zero."""
    return values.new_zeros(segments, *values.shape[1:]).index_add(0, segment, values)


def segment_count(segment: Int64[Tensor, " n"], segments: int) -> Int64[Tensor, " c"]:
    """How many rows belong to each segment."""
    return segment.new_zeros(segments).index_add(0, segment, torch.ones_like(segment))


def segment_softmax(
    logits: Float[Tensor, " n *rest"], segment: Int64[Tensor, " n"], segments: int
) -> Float[Tensor, " n *rest"]:
    """Weights that sum to 1 inside each segment: exp(l_i − max_c) / Σ_c exp(l_j − max_c)."""
    index = segment.reshape(-1, *[1] * (logits.ndim - 1)).expand_as(logits)
    largest = logits.detach().new_full((segments, *logits.shape[1:]), -torch.inf)
    largest = largest.scatter_reduce(0, index, logits.detach(), "amax")
    # The largest term of a segment is exp(0), so a segment with rows never divides by less than 1.
    weight = (logits - largest[segment]).exp()
    return weight / segment_sum(weight, segment, segments)[segment]
