"""The gates of the attention surrogates: how much of a variance counts, as the network itself decides (maths §2.2)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attcem.maths import Moments, class_gate, excess, snr_gate
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
        start = {name: torch.tensor(value) for name, value in SCALARS.items()}
        start |= {name: start[name].log() for name in POSITIVE}
        learned = learnable and not open
        self.scalars = nn.ParameterDict({name: nn.Parameter(value, learned) for name, value in start.items()})

    def __getitem__(self, name: str) -> Scalar:
        return self.scalars[name].exp() if name in POSITIVE else self.scalars[name]

    def forward(
        self, found: Moments, p: Float[Tensor, " c"], threshold: Scalar, gamma: float
    ) -> tuple[Float[Tensor, "c k d"], Float[Tensor, " c"], dict[str, Tensor]]:
        """ψ of every class, slot and feature, the class gate at shares p of the batch, and all gates there are."""
        base = excess(found.var, threshold, gamma, self["beta"], self["margin"])
        if self.open:
            return base, torch.ones_like(p), {}
        dim = torch.sigmoid(self.mlp(self.norm(torch.log(found.var + gamma))))
        snr = snr_gate(found.mu, found.var, self["kappa"], self["t"])
        of_class = class_gate(p, self["a"], self["b"])
        return dim * snr * base, of_class, {"dim": dim, "snr": snr, "class": of_class}
