"""The gates of the attention surrogates: how much of a variance counts, as the network itself decides (maths §2.2)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attcem.maths import class_gate, excess, snr_gate
from attcem.maths.gates import Scalar

SCALARS = {"a": 10.0, "b": 0.05, "t": 0.3, "kappa": 10.0, "beta": 1.0, "margin": 0.1, "power": 2.0, "sharpness": 10.0}
POSITIVE = ("a", "kappa", "beta", "power", "sharpness")
"""Kept as logarithms, so that no step of learning makes one of them negative."""


class Gates(nn.Module):
    """ψ = dim gate ⊙ SNR gate ⊙ softplus term; dim gate = sigmoid( MLP(LN(log σ²)) ).

    Its scalars are constants, or learned. `open` leaves only the softplus term, with constant scalars: then no gate can
    close, and nothing is multiplied away.
    """

    def __init__(self, width: int, *, learnable: bool, open: bool) -> None:
        super().__init__()
        self.open = open
        hidden = min(512, max(64, width // 4))
        if not open:
            self.norm = nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))
        self.scalars = nn.ParameterDict(
            {
                name: nn.Parameter(
                    torch.tensor(value).log() if name in POSITIVE else torch.tensor(value), learnable and not open
                )
                for name, value in SCALARS.items()
            }
        )

    def __getitem__(self, name: str) -> Scalar:
        """One of the scalars."""
        return self.scalars[name].exp() if name in POSITIVE else self.scalars[name]

    def forward(
        self, mu: Float[Tensor, "c k d"], var: Float[Tensor, "c k d"], threshold: Scalar, gamma: float
    ) -> tuple[Float[Tensor, "c k d"], dict[str, Tensor]]:
        """ψ of every class, slot and feature, and the gates it was made with."""
        base = excess(var, threshold, gamma, self["beta"], self["margin"])
        if self.open:
            return base, {}
        dim = torch.sigmoid(self.mlp(self.norm(torch.log(var + gamma))))
        snr = snr_gate(mu, var, self["kappa"], self["t"])
        return dim * snr * base, {"dim": dim, "snr": snr}

    def of_class(self, p: Float[Tensor, " c"]) -> Float[Tensor, " c"]:
        """sigmoid( a(M/B − b) ), or 1 when open."""
        return torch.ones_like(p) if self.open else class_gate(p, self["a"], self["b"])
