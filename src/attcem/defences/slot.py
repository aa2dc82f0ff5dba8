"""Slot attention and gated cross attention: the variance of a class, after its samples have looked at its slots."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attcem.defences.gated import Gates
from attcem.defences.surrogate import Attentive, Insight, Part
from attcem.layers import GatedCrossAttention, SlotAttention
from attcem.maths import hinge, moments
from attcem.naming import look_up
from attcem.types import Batch

FORMS = {
    "hinge": "L_c = mean_d ReLU( log(Var(y) + γ) − log θ ),   y = GatedCrossAttention(x, slots)",
    "mixture": "L_c = g_c · mean_d Σ_k w_k ψ_kd,   w_k ∝ ( Σ_m r_mk / M )^p",
}
"""What each asks of the encoder."""
SILENT_CALLS = 100
SHUT_ABOVE = {"snr": 0.5, "dim": 0.6}
KEEP = 0.9  # of a running mean at each call


class Slot(Attentive):
    """Penalises the variance of each class after slot and cross attention; it can fall although leakage does not.

    x = LN(ẑ_c);  slots = SlotAttention(x);  y = GatedCrossAttention(x, slots)
    hinge: L_c = mean_d ReLU( log(Var_unbiased(y)+γ) − log θ )
    mixture: r = softmax_k( β·cos(x_m, s_k) );  w̃_k ∝ (Σ_m r_mk / M)^power;  L_c = class gate · mean_d Σ_k w̃_k ψ_kd,
    ψ the gated softplus term of each slot's moments of y.

    Args:
        lam: weight of the penalty's gradient in the encoder.
        form: hinge, or mixture, whose gates and scalars are learned and can close on what leaks.
        tokens: spatial (every position), flat (the whole latent), pooled (mean over positions) or project.
        width: features of projected tokens.
        slots: number of slots.
        iters: rounds of slot attention.
        threshold: noise, constant, schedule or quantile: above which variance a feature counts as leaking.
        var_threshold: τ of the noise threshold.
        gamma: floor of the variance inside the log.
        loss_scale: factor on the penalty, for the encoder and for the attention.
        shut_off: no penalty for the first 100 calls, nor while the running mean of the SNR gate is over 0.5 or that of
            the dim gate over 0.6 (mixture only).
        open_gates: keep every gate at 1, so that none can close and none shuts the penalty off.
        warmup: epochs before it starts.
    """

    calls: Tensor
    silent: Tensor

    def __init__(
        self,
        lam: float = 16.0,
        form: str = "hinge",
        tokens: str = "spatial",
        width: int = 128,
        slots: int = 8,
        iters: int = 3,
        threshold: str = "noise",
        var_threshold: float = 0.125,
        gamma: float = 1e-6,
        loss_scale: float = 0.25,
        shut_off: bool = True,
        open_gates: bool = False,
        warmup: int = 3,
    ) -> None:
        super().__init__()
        self.count_above(threshold, var_threshold, gamma)
        look_up("form", form, FORMS)
        self.lam, self.form, self.warmup, self.loss_scale = lam, form, warmup, loss_scale
        self.tokens, self.width, self.slots, self.iters = tokens, width, slots, iters
        self.shut_off, self.open_gates = shut_off, open_gates

    @property
    def equation(self) -> str:
        return FORMS[self.form]

    def attend_to(self, width: int) -> None:
        heads = next(heads for heads in (4, 2, 1) if width % heads == 0)
        self.norm = nn.LayerNorm(width, elementwise_affine=not self.open_gates)
        self.attention = SlotAttention(width, self.slots, self.iters)
        self.cross = GatedCrossAttention(width, heads)
        if self.form == "mixture":
            self.gates = Gates(width, learnable=True, open=self.open_gates)
            self.register_buffer("calls", torch.zeros((), dtype=torch.long))
            self.register_buffer("silent", torch.zeros((), dtype=torch.long))
            for name in SHUT_ABOVE:
                self.register_buffer(f"mean_{name}_gate", torch.zeros(()))

    def losses(self, part: Part) -> tuple[Float[Tensor, " c"], Insight]:
        x = self.norm(self.tokenise(part.z))
        slots, resp = self.attention(x, group=part.y, groups=part.classes)
        y = self.cross(x, slots, group=part.y)
        if self.form == "hinge":
            var = moments(y, part.y, part.classes, unbiased=True).var
            return hinge(var, self.theta(var, part), self.gamma).mean((1, 2)), Insight(resp=resp)
        cosine = F.normalize(x, dim=-1) @ F.normalize(slots, dim=-1)[part.y].transpose(1, 2)
        resp = (self.gates["sharpness"] * cosine).softmax(-1)
        found = moments(y, part.y, part.classes, resp)
        weight = (self.gates["power"] * found.mass.clamp_min(1e-20).log()).softmax(-1)
        psi, of_class, gates = self.gates(found, part.p, self.theta(found.var, part), self.gamma)
        return of_class * (weight.unsqueeze(-1) * psi).sum(1).mean(1), Insight(resp=resp, gates=gates)

    def active(self, insight: Insight, batch: Batch) -> bool:
        """Follow the gates, and say whether they let the penalty through."""
        if not (self.shut_off and insight.gates.keys() >= SHUT_ABOVE.keys()):
            return True
        shut = bool(self.calls < SILENT_CALLS)
        for name, limit in SHUT_ABOVE.items():
            mean = getattr(self, f"mean_{name}_gate")
            now = insight.gates[name].detach().mean()
            mean.copy_(now if self.calls == 0 else KEEP * mean + (1 - KEEP) * now)
            shut = shut or bool(mean > limit)
        self.calls += 1
        self.silent += int(shut)
        batch.readings["shut_off"] = torch.tensor(float(shut))
        return not shut

    @property
    def flags(self) -> list[str]:
        calls, silent = int(getattr(self, "calls", 0)), int(getattr(self, "silent", 0))
        if 2 * silent <= calls:
            return []
        means = ", ".join(f"{name} gate {float(getattr(self, f'mean_{name}_gate')):.2f}" for name in SHUT_ABOVE)
        return [
            f"was shut off in {silent / calls:.0%} of its steps (running means: {means}): the encoder was "
            "hardly penalised; shut_off=false or open_gates=true penalises every step"
        ]
