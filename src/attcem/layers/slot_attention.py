"""Slot attention: a few slots compete for the inputs of a set."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from attcem.layers.masking import blank


class SlotAttention(nn.Module):
    """Rounds of: inputs choose among slots, each slot becomes the mean of what chose it (Locatello 2020; maths §2.3).

    q = W_q LN(slots)/√d;  logits = k·q / d^¼;  r = softmax over slots;  update = mean of v under r + eps;
    slots ← GRU(update, slots);  slots ← slots + MLP(LN(slots)).  k and v come from LN(x).

    Slots start at μ + σ·ε. In training a `fresh` ε is drawn every time; in evaluation, and without `fresh`, it is one
    draw, made with the layer and saved with it. Starting at μ alone would leave all slots the same for ever.
    """

    epsilon: Tensor

    def __init__(
        self,
        width: int,
        slots: int = 8,
        iters: int = 3,
        hidden: int | None = None,
        *,
        fresh: bool = True,
        eps: float = 1e-8,
    ) -> None:
        super().__init__()
        if slots < 1 or iters < 1:
            raise ValueError(f"slot attention needs at least one slot and one round, not {slots} and {iters}")
        hidden = hidden or width
        self.iters, self.fresh, self.eps = iters, fresh, eps
        self.mu = nn.Parameter(torch.randn(width) / width**0.5)
        self.log_sigma = nn.Parameter(torch.zeros(width))
        self.register_buffer("epsilon", torch.randn(slots, width))
        self.norm_inputs, self.norm_slots, self.norm_mlp = (nn.LayerNorm(width) for _ in range(3))
        self.to_q, self.to_k, self.to_v = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.gru = nn.GRUCell(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))

    def forward(
        self,
        x: Float[Tensor, "b n d"],
        mask: Bool[Tensor, "b n"] | None = None,
        group: Int64[Tensor, " b"] | None = None,
        groups: int | None = None,
    ) -> tuple[Float[Tensor, "g s d"], Float[Tensor, "b n s"]]:
        """The slots, and the last round's responsibilities: 1 over the slots of an input that counts, else 0.

        Rows of one `group` are one set and share its slots; without groups every row is a set by itself.
        """
        x = self.norm_inputs(blank(x, mask))
        k, v = self.to_k(x), self.to_v(x)
        counts = x.new_ones(*x.shape[:2], 1) if mask is None else mask.unsqueeze(-1).to(x.dtype)
        if group is None:
            groups = x.shape[0]
        slots = self.start(int(group.max()) + 1 if groups is None else groups)  # type: ignore[union-attr]
        for _ in range(self.iters):
            slots, resp = self.round(slots, k, v, counts, group)
        return slots, resp

    def start(self, sets: int) -> Float[Tensor, "g s d"]:
        epsilon = self.epsilon.expand(sets, *self.epsilon.shape)
        if self.training and self.fresh:
            epsilon = torch.randn_like(epsilon)
        return self.mu + self.log_sigma.exp() * epsilon

    def round(
        self,
        slots: Float[Tensor, "g s d"],
        k: Float[Tensor, "b n d"],
        v: Float[Tensor, "b n d"],
        counts: Float[Tensor, "b n 1"],
        group: Int64[Tensor, " b"] | None,
    ) -> tuple[Float[Tensor, "g s d"], Float[Tensor, "b n s"]]:
        width = slots.shape[-1]
        q = self.to_q(self.norm_slots(slots)) / width**0.5
        resp = (k @ (q if group is None else q[group]).transpose(1, 2) / width**0.25).softmax(-1) * counts
        shares = resp + self.eps * counts
        mass, total = shares.sum(1), shares.transpose(1, 2) @ v
        if group is not None:
            mass = slots.new_zeros(slots.shape[:2]).index_add(0, group, mass)
            total = torch.zeros_like(slots).index_add(0, group, total)
        # a set in which nothing counts has no mass: its update is zero.
        update = total / mass.clamp_min(self.eps).unsqueeze(-1)
        slots = self.gru(update.flatten(0, 1), slots.flatten(0, 1)).unflatten(0, slots.shape[:2])
        return slots + self.mlp(self.norm_mlp(slots)), resp
