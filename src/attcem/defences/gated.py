"""Gated attention pooling: the variance of a class, as attention weighs its samples."""

from __future__ import annotations

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn

from attcem.defences.base import NOISE
from attcem.defences.gates import Gates
from attcem.defences.surrogate import Attentive, Insight, Part
from attcem.layers import GatedAttentionPooling
from attcem.maths import NEED_NOISE, THRESHOLDS, Moments, hinge, moments, segment_softmax
from attcem.naming import look_up


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
        look_up("threshold", threshold, THRESHOLDS)
        self.weigh = look_up("form", form, FORMS)
        self.lam, self.form, self.warmup, self.loss_scale, self.open_gates = lam, form, warmup, loss_scale, open_gates
        self.tokens, self.width = tokens, width
        self.threshold, self.var_threshold, self.gamma = threshold, var_threshold, gamma
        self.needs = frozenset([NOISE] * (threshold in NEED_NOISE))

    def attend_to(self, width: int) -> None:
        """Normalisation, attention, and the gates of the form that has them."""
        self.norm = nn.LayerNorm(width, elementwise_affine=not self.open_gates)
        self.attention = GatedAttentionPooling(width)
        if self.form == "gates":
            self.gates = Gates(width, learnable=False, open=self.open_gates)

    def losses(self, part: Part) -> tuple[Float[Tensor, " c"], Insight]:
        """Weighted variances over the threshold, hinged or gated."""
        x = self.norm(self.tokenise(part.z))
        alpha = share_inside_class(self.attention.logits(x), part)
        losses, gates = self.weigh(self, moments(x, part.y, part.classes, alpha.unsqueeze(-1)), part)
        return losses, Insight(alpha, gates=gates)


def hinged(self: Gated, found: Moments, part: Part) -> tuple[Float[Tensor, " c"], dict[str, Tensor]]:
    """mean_d ReLU( log(σ²+γ) − log θ )."""
    return hinge(found.var, self.theta(found.var, part), self.gamma).mean((1, 2)), {}


def gated(self: Gated, found: Moments, part: Part) -> tuple[Float[Tensor, " c"], dict[str, Tensor]]:
    """class gate · mean_d( dim gate ⊙ SNR gate ⊙ softplus term )."""
    psi, gates = self.gates(found.mu, found.var, self.theta(found.var, part), self.gamma)
    of_class = self.gates.of_class(part.p)
    return of_class * psi.mean((1, 2)), gates | ({} if self.open_gates else {"class": of_class})


FORMS: dict[str, Callable[[Gated, Moments, Part], tuple[Float[Tensor, " c"], dict[str, Tensor]]]] = {
    "hinge": hinged,
    "gates": gated,
}


def share_inside_class(logits: Float[Tensor, "n t"], part: Part) -> Float[Tensor, "n t"]:
    """Softmax over all tokens of a class."""
    owner = part.y.repeat_interleave(logits.shape[1])
    return segment_softmax(logits.flatten(), owner, part.classes).reshape(logits.shape)
