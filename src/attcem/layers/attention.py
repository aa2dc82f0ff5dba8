"""Attention over sets: gated pooling, slots that compete for inputs, and inputs that look at a context.

A masked input has no influence, not even through NaN, and an empty set stays finite.
"""

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn


def blank(x: Float[Tensor, "b n d"], mask: Bool[Tensor, "b n"] | None) -> Float[Tensor, "b n d"]:
    return x if mask is None else x.masked_fill(~mask.unsqueeze(-1), 0.0)


def masked_softmax(
    logits: Float[Tensor, "*shape"], mask: Bool[Tensor, "*#shape"] | None, dim: int
) -> Float[Tensor, "*shape"]:
    """Softmax over what counts; where nothing counts, all weights are zero."""
    if mask is None:
        return logits.softmax(dim)
    return logits.masked_fill(~mask, torch.finfo(logits.dtype).min).softmax(dim) * mask


class GatedScores(nn.Module):
    """scores = W[ tanh(Vx) ⊙ sigmoid(Ux) ]: how much each input asks for, `outputs` times over."""

    def __init__(self, width: int, outputs: int, hidden: int | None = None) -> None:
        super().__init__()
        hidden = hidden or min(512, max(64, width // 4))
        self.V = nn.Linear(width, hidden, bias=False)
        self.U = nn.Linear(width, hidden, bias=False)
        self.w = nn.Linear(hidden, outputs, bias=False)

    def forward(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n outputs"]:
        return self.w(torch.tanh(self.V(x)) * torch.sigmoid(self.U(x)))


class GatedAttentionPooling(nn.Module):
    """α = softmax( w·[ tanh(Vx) ⊙ sigmoid(Ux) ] ), pooled = Σ α x (Ilse, Tomczak, Welling 2018)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scores = GatedScores(width, 1)

    def logits(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n"]:
        return self.scores(x).squeeze(-1)

    def forward(
        self, x: Float[Tensor, "b n d"], mask: Bool[Tensor, "b n"] | None = None
    ) -> tuple[Float[Tensor, "b n"], Float[Tensor, "b d"]]:
        """Weights, which sum to 1 over the inputs that count, and the mean under them."""
        x = blank(x, mask)
        alpha = masked_softmax(self.logits(x), mask, dim=1)
        return alpha, (alpha.unsqueeze(-1) * x).sum(1)


class SlotAttention(nn.Module):
    """Rounds of: inputs choose among slots, each slot becomes the mean of what chose it (Locatello 2020).

    q = W_q LN(slots)/√d;  logits = k·q / d^¼;  r = softmax over slots;  update = mean of v under r + eps;
    slots ← GRU(update, slots);  slots ← slots + MLP(LN(slots)).  k and v come from LN(x).

    Slots start at μ + σ·ε. In training a `fresh` ε is drawn every time; in evaluation, and without `fresh`, it is one
    draw, made with the layer and saved with it. Starting at μ alone would leave all slots the same for ever.
    """

    epsilon: Tensor
    eps = 1e-8

    def __init__(self, width: int, slots: int = 8, iters: int = 3, *, fresh: bool = True) -> None:
        super().__init__()
        if slots < 1 or iters < 1:
            raise ValueError(f"slot attention needs at least one slot and one round, not {slots} and {iters}")
        self.iters, self.fresh = iters, fresh
        self.mu = nn.Parameter(torch.randn(width) / width**0.5)
        self.log_sigma = nn.Parameter(torch.zeros(width))
        self.register_buffer("epsilon", torch.randn(slots, width))
        self.norm_inputs, self.norm_slots, self.norm_mlp = (nn.LayerNorm(width) for _ in range(3))
        self.to_q, self.to_k, self.to_v = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.gru = nn.GRUCell(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

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
        sets = int(group.max()) + 1 if groups is None else groups  # type: ignore[union-attr]
        epsilon = self.epsilon.expand(sets, *self.epsilon.shape)
        if self.training and self.fresh:
            epsilon = torch.randn_like(epsilon)
        slots = self.mu + self.log_sigma.exp() * epsilon
        width = slots.shape[-1]
        for _ in range(self.iters):
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
            slots = slots + self.mlp(self.norm_mlp(slots))
        return slots, resp


class GatedCrossAttention(nn.Module):
    """y = x + tanh(α_x)·Attn(LN x, LN context);  y + tanh(α_f)·FFN(LN y) (Alayrac 2022).

    Attn = softmax(q·k / √(d/heads)) v in every head; nothing where no context counts.
    Both α start at 0.1: nearly the identity, with a gradient to every weight from the first step.
    """

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        if width % heads:
            divisors = [h for h in range(1, heads) if width % h == 0]
            raise ValueError(f"width {width} cannot be shared by {heads} heads: try heads={divisors[-1]}")
        self.heads = heads
        self.norm_q, self.norm_kv, self.norm_ff = (nn.LayerNorm(width) for _ in range(3))
        self.to_q, self.to_k, self.to_v, self.to_out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.ff = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
        self.alpha_x, self.alpha_f = (nn.Parameter(torch.tensor(0.1)) for _ in range(2))

    def forward(
        self,
        x: Float[Tensor, "b n d"],
        context: Float[Tensor, "g s d"],
        mask: Bool[Tensor, "b n"] | None = None,
        context_mask: Bool[Tensor, "g s"] | None = None,
        group: Int64[Tensor, " b"] | None = None,
    ) -> Float[Tensor, "b n d"]:
        """The inputs with what they took from the context; masked inputs come out as zeros.

        Row i looks at context[group[i]]; without groups, at context[i].
        """
        x, context = blank(x, mask), blank(context, context_mask)
        looking, seen = self.norm_q(x), self.norm_kv(context)
        k, v = self.to_k(seen), self.to_v(seen)
        if group is not None:
            k, v, context_mask = k[group], v[group], None if context_mask is None else context_mask[group]
        heads = (projected.unflatten(-1, (self.heads, -1)) for projected in (self.to_q(looking), k, v))
        q, k, v = (head.transpose(1, 2) for head in heads)
        logits = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5
        weights = masked_softmax(logits, None if context_mask is None else context_mask[:, None, None], dim=-1)
        y = x + self.alpha_x.tanh() * self.to_out((weights @ v).transpose(1, 2).flatten(2))
        return blank(y + self.alpha_f.tanh() * self.ff(self.norm_ff(y)), mask)
