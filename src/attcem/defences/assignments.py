"""Who belongs to which slot of its class: the soft assignments that the rate bound may choose from (maths §2.4)."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from attcem.layers import GatedScores, SlotAttention


class Assignment(nn.Module):
    """Produces the responsibilities r of a class's slots for tokens [n t d]: 1 over the slots."""

    slots: int
    attentive: bool = True

    def __init__(self, width: int, slots: int, iters: int) -> None:
        super().__init__()
        self.slots = slots


class WholeClass(Assignment):
    """r = 1: a class is one slot."""

    attentive = False

    def __init__(self, width: int, slots: int, iters: int) -> None:
        super().__init__(width, 1, iters)

    def forward(self, x: Float[Tensor, "n t d"], y: Int64[Tensor, " n"], classes: int) -> Float[Tensor, "n t 1"]:
        return torch.ones_like(x[..., :1])


class GatedAssignment(Assignment):
    """r = softmax_k( W[ tanh(V LN(x)) ⊙ sigmoid(U LN(x)) ] )."""

    def __init__(self, width: int, slots: int, iters: int) -> None:
        super().__init__(width, slots, iters)
        self.norm = nn.LayerNorm(width)
        self.scores = GatedScores(width, slots)

    def forward(self, x: Float[Tensor, "n t d"], y: Int64[Tensor, " n"], classes: int) -> Float[Tensor, "n t k"]:
        return self.scores(self.norm(x)).softmax(-1)


class SlotAssignment(Assignment):
    """r = the responsibilities of slot attention over the class's tokens, which it normalises itself."""

    def __init__(self, width: int, slots: int, iters: int) -> None:
        super().__init__(width, slots, iters)
        # Slots that start elsewhere in every batch would make a memory of them meaningless.
        self.attention = SlotAttention(width, slots, iters, fresh=False)

    def forward(self, x: Float[Tensor, "n t d"], y: Int64[Tensor, " n"], classes: int) -> Float[Tensor, "n t k"]:
        return self.attention(x, group=y, groups=classes)[1]


ASSIGNMENTS: dict[str, type[Assignment]] = {"class": WholeClass, "gated": GatedAssignment, "slot": SlotAssignment}
