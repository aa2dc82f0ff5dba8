"""Gated attention pooling: a set becomes the mean of the inputs that matter."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attcem.layers.masking import blank, masked_softmax


class GatedScores(nn.Module):
    """scores = W[ tanh(Vx) ⊙ sigmoid(Ux) ]: how much each input asks for, `outputs` times over.

    `hidden` is the width of V and U, by default min(512, max(64, width/4)).
    """

    def __init__(self, width: int, outputs: int, hidden: int | None = None) -> None:
        super().__init__()
        hidden = hidden or min(512, max(64, width // 4))
        self.V = nn.Linear(width, hidden, bias=False)
        self.U = nn.Linear(width, hidden, bias=False)
        self.w = nn.Linear(hidden, outputs, bias=False)

    def forward(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n outputs"]:
        return self.w(torch.tanh(self.V(x)) * torch.sigmoid(self.U(x)))


class GatedAttentionPooling(nn.Module):
    """α = softmax( w·[ tanh(Vx) ⊙ sigmoid(Ux) ] ), pooled = Σ α x (Ilse, Tomczak, Welling 2018; maths §2.2)."""

    def __init__(self, width: int, hidden: int | None = None) -> None:
        super().__init__()
        self.scores = GatedScores(width, 1, hidden)

    def logits(self, x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n"]:
        return self.scores(x).squeeze(-1)

    def forward(
        self, x: Float[Tensor, "b n d"], mask: Bool[Tensor, "b n"] | None = None
    ) -> tuple[Float[Tensor, "b n"], Float[Tensor, "b d"]]:
        """Weights, which sum to 1 over the inputs that count, and the mean under them."""
        x = blank(x, mask)
        alpha = masked_softmax(self.logits(x), mask, dim=1)
        return alpha, (alpha.unsqueeze(-1) * x).sum(1)
