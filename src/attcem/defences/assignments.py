"""Who belongs to which slot of its class, and moments of slots that outlive a batch: for the rate bound."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from attcem.layers import GatedScores, SlotAttention
from attcem.maths import Moments, merge


class WholeClass(nn.Module):
    """r = 1: a class is one slot."""

    def __init__(self, width: int, slots: int, iters: int) -> None:
        super().__init__()

    def forward(self, x: Float[Tensor, "n t d"], y: Int64[Tensor, " n"], classes: int) -> Float[Tensor, "n t 1"]:
        return torch.ones_like(x[..., :1])


class GatedAssignment(nn.Module):
    """r = softmax_k( W[ tanh(V LN(x)) ⊙ sigmoid(U LN(x)) ] )."""

    def __init__(self, width: int, slots: int, iters: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.scores = GatedScores(width, slots)

    def forward(self, x: Float[Tensor, "n t d"], y: Int64[Tensor, " n"], classes: int) -> Float[Tensor, "n t k"]:
        return self.scores(self.norm(x)).softmax(-1)


class SlotAssignment(nn.Module):
    """r = the responsibilities of slot attention over the class's tokens, which it normalises itself."""

    def __init__(self, width: int, slots: int, iters: int) -> None:
        super().__init__()
        # Slots that start elsewhere in every batch would make a memory of them meaningless.
        self.attention = SlotAttention(width, slots, iters, fresh=False)

    def forward(self, x: Float[Tensor, "n t d"], y: Int64[Tensor, " n"], classes: int) -> Float[Tensor, "n t k"]:
        return self.attention(x, group=y, groups=classes)[1]


ASSIGNMENTS: dict[str, type[nn.Module]] = {"class": WholeClass, "gated": GatedAssignment, "slot": SlotAssignment}
"""Width of a token, slots of a class, rounds → what makes responsibilities [n t k] of tokens [n t d], 1 over slots."""


class MomentMemory(nn.Module):
    """A running mean of every class's and slot's moments; at each step `keep` of it stays.

    The value comes from memory and batch together, the gradient from the batch alone, at the size it would have if the
    batch were all there is: a stochastic gradient of the whole data set's bound, instead of the exact gradient of a
    batch's, which a few samples in each slot make look much tighter than it is.
    """

    mass: Tensor
    mu: Tensor
    var: Tensor

    def __init__(self, classes: int, slots: int, width: int, keep: float, *, full: bool) -> None:
        super().__init__()
        self.keep = keep
        self.register_buffer("mass", torch.zeros(classes, slots))
        self.register_buffer("mu", torch.zeros(classes, slots, width))
        self.register_buffer("var", torch.zeros(classes, slots, width, *[width] * full))
        self.pending: tuple[Int64[Tensor, " c"], Moments] | None = None

    def recall(self, found: Moments, present: Int64[Tensor, " c"]) -> Moments:
        like = found.var
        old = Moments(self.mass[present].to(like), self.mu[present].to(like), self.var[present].to(like))
        merged = merge(old, found, self.keep)
        self.pending = present, Moments(merged.mass.detach(), merged.mu.detach(), merged.var.detach())
        # How much of what is known of a class is in this batch: more for one that is rarely seen.
        share = (1 - self.keep) * found.mass.sum(1) / merged.mass.sum(1)
        return Moments(*(amplify(value, 1 / share.detach()) for value in (merged.mass, merged.mu, merged.var)))

    @torch.no_grad()
    def commit(self) -> None:
        """Remember what the last step saw, unless it was not finite or is too large to keep."""
        if self.pending is None:
            return
        (present, seen), self.pending = self.pending, None
        mass, mu, var = seen.mass.to(self.mass), seen.mu.to(self.mu), seen.var.to(self.var)
        if all(value.isfinite().all() for value in (mass, mu, var)):
            self.mass.mul_(self.keep)
            self.mass[present], self.mu[present], self.var[present] = mass, mu, var


def amplify(value: Float[Tensor, " c *n"], gain: Float[Tensor, " c"]) -> Float[Tensor, " c *n"]:
    """The same value with a gradient `gain` times as large."""
    return value.detach() + gain.reshape(-1, *[1] * (value.ndim - 1)) * (value - value.detach())
