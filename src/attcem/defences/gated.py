"""Gated attention pooling: the variance of a class, as attention weighs its samples, and gates that let it count."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attcem.defences.surrogate import Attentive, Insight, Part
from attcem.layers import GatedAttentionPooling
from attcem.maths import Moments, class_gate, excess, hinge, moments, segment_softmax, snr_gate
from attcem.maths.gates import Scalar
from attcem.naming import look_up

FORMS = {
    "hinge": "L_c = mean_d ReLU( log(σ_α² + γ) − log θ ),   σ_α² = Σ α (x − μ)²,   x = LN(ẑ)",
    "gates": "L_c = g_c · mean_d( g_d ⊙ g_SNR ⊙ softplus( log σ_α² − log θ ) ),   x = LN(ẑ)",
}
"""What each asks of the encoder."""

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


class Gated(Attentive):
    """Penalises the variance of each class's latents under gated attention; it can fall although leakage does not.

    x = LN(ẑ_c);  α = softmax over the class( w·[ tanh(Vx) ⊙ sigmoid(Ux) ] );  μ = Σ α x;  σ² = Σ α (x−μ)²
    hinge: L_c = mean_d ReLU( log(σ²+γ) − log θ )
    gates: L_c = class gate · mean_d( dim gate ⊙ SNR gate ⊙ softplus term )

    Args:
        lam: weight of the penalty's gradient in the encoder.
        form: hinge, or gates, whose learned gates can close on what leaks.
        tokens: flat (the whole latent), spatial (every position), pooled (mean over positions) or project.
        width: features of projected tokens.
        threshold: noise, constant, schedule or quantile: above which variance a feature counts as leaking.
        var_threshold: τ of the noise threshold.
        gamma: floor of the variance inside the log.
        loss_scale: factor on the penalty, for the encoder and for the attention; documents name 0.1 and 0.25.
        open_gates: keep every gate at 1 and learn no scale, so that only the attention is left to learn.
        warmup: epochs before it starts.
    """

    def __init__(
        self,
        lam: float = 16.0,
        form: str = "hinge",
        tokens: str = "flat",
        width: int = 128,
        threshold: str = "noise",
        var_threshold: float = 0.125,
        gamma: float = 1e-6,
        loss_scale: float = 0.1,
        open_gates: bool = False,
        warmup: int = 5,
    ) -> None:
        super().__init__()
        self.count_above(threshold, var_threshold, gamma)
        look_up("form", form, FORMS)
        self.lam, self.form, self.warmup, self.loss_scale, self.open_gates = lam, form, warmup, loss_scale, open_gates
        self.tokens, self.width = tokens, width

    @property
    def equation(self) -> str:
        return FORMS[self.form]

    def attend_to(self, width: int) -> None:
        self.norm = nn.LayerNorm(width, elementwise_affine=not self.open_gates)
        self.attention = GatedAttentionPooling(width)
        if self.form == "gates":
            self.gates = Gates(width, learnable=False, open=self.open_gates)

    def losses(self, part: Part) -> tuple[Float[Tensor, " c"], Insight]:
        x = self.norm(self.tokenise(part.z))
        scores = self.attention.logits(x)
        owner = part.y.repeat_interleave(scores.shape[1])
        alpha = segment_softmax(scores.flatten(), owner, part.classes).reshape(scores.shape)
        found = moments(x, part.y, part.classes, alpha.unsqueeze(-1))
        theta = self.theta(found.var, part)
        if self.form == "hinge":
            return hinge(found.var, theta, self.gamma).mean((1, 2)), Insight(alpha)
        psi, of_class, gates = self.gates(found, part.p, theta, self.gamma)
        return of_class * psi.mean((1, 2)), Insight(alpha, gates=gates)
