"""Gated cross attention: inputs look at a context, and two learned gates decide how much of it they take."""

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn

from attcem.layers.masking import blank, masked_softmax


class GatedCrossAttention(nn.Module):
    """y = x + tanh(α_x)·Attn(LN x, LN context);  y + tanh(α_f)·FFN(LN y) (Alayrac 2022; maths §2.3).

    Attn = softmax(q·k / √(d/heads)) v in every head; nothing where no context counts.
    Both α start at 0.1: nearly the identity, with a gradient to every weight from the first step.
    """

    def __init__(self, width: int, heads: int = 4, hidden: int | None = None) -> None:
        super().__init__()
        if width % heads:
            divisors = [h for h in range(1, heads) if width % h == 0]
            raise ValueError(f"width {width} cannot be shared by {heads} heads: try heads={divisors[-1]}")
        hidden = hidden or width
        self.heads = heads
        self.norm_q, self.norm_kv, self.norm_ff = (nn.LayerNorm(width) for _ in range(3))
        self.to_q, self.to_k, self.to_v, self.to_out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.ff = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
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
