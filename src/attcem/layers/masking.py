"""What a mask means: a masked input has no influence, not even through NaN, and an empty set stays finite."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def blank(x: Float[Tensor, "b n d"], mask: Bool[Tensor, "b n"] | None) -> Float[Tensor, "b n d"]:
    """The inputs with masked ones set to zero."""
    return x if mask is None else x.masked_fill(~mask.unsqueeze(-1), 0.0)


def masked_softmax(
    logits: Float[Tensor, "*shape"], mask: Bool[Tensor, "*#shape"] | None, dim: int
) -> Float[Tensor, "*shape"]:
    """Softmax over what counts; where nothing counts, all weights are zero."""
    if mask is None:
        return logits.softmax(dim)
    return logits.masked_fill(~mask, torch.finfo(logits.dtype).min).softmax(dim) * mask
