"""Screen every class cheaply, refine where it leaks."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attcem.defences.bound import Bound
from attcem.defences.gated import Gated
from attcem.defences.slot import Slot
from attcem.defences.surrogate import Insight, Part, Surrogate
from attcem.naming import look_up
from attcem.types import Batch

KEEP = 0.9  # of a class's running risk at each step in which it is seen

DEEP: dict[str, Callable[..., Surrogate]] = {
    "slot": Slot,
    "bound": lambda **threshold: Bound(assign="slot", tokens="spatial", memory=0.9),
}


class Hybrid(Surrogate):
    """Scores every class by gated attention, and spends slot attention on those that leak most.

    risk_c ← 0.9·risk_c + 0.1·gated_c; L_c is the slot penalty (or that of bound with slots) for the `refine` classes of
    the batch whose running risk is highest, and the gated hinge for the others. Each keeps its own loss scale.

    Args:
        lam: weight of the penalty's gradient in the encoder.
        refine: share of the batch's classes that is refined.
        deep: slot or bound: what is spent on them.
        tokens: what the cheap score sees: flat, spatial, pooled or project.
        threshold: noise, constant, schedule or quantile: above which variance a feature counts as leaking.
        var_threshold: τ of the noise threshold.
        gamma: floor of the variance inside the log.
        loss_scale: factor on the whole penalty.
        warmup: epochs before it starts.
    """

    equation = "L_c = L_c^deep  (R_c ≥ ρ),   L_c^gated  (R_c < ρ);   R_c ← 0.9 R_c + 0.1 L_c^gated"
    risk: Tensor

    def __init__(
        self,
        lam: float = 16.0,
        refine: float = 0.3,
        deep: str = "slot",
        tokens: str = "flat",
        threshold: str = "noise",
        var_threshold: float = 0.125,
        gamma: float = 1e-6,
        loss_scale: float = 1.0,
        warmup: int = 5,
    ) -> None:
        super().__init__()
        if not 0 < refine <= 1:
            raise ValueError(f"refine={refine} is no share of the classes: give something like 0.3")
        settings = {"threshold": threshold, "var_threshold": var_threshold, "gamma": gamma}
        self.screen = Gated(tokens=tokens, **settings)  # type: ignore[arg-type]
        self.refined = look_up("deep", deep, DEEP)(**settings)
        self.lam, self.refine, self.deep, self.tokens, self.warmup = lam, refine, deep, tokens, warmup
        self.loss_scale = loss_scale
        self.count_above(**settings)  # type: ignore[arg-type]
        self.needs |= self.refined.needs
        self.seen: tuple[Tensor, Tensor] | None = None

    def build(self, latent: tuple[int, ...]) -> None:
        for surrogate in (self.screen, self.refined):
            surrogate.setup(latent=latent, classes=self.classes, sigma=self.sigma_n)
        self.register_buffer("risk", torch.full((self.classes,), torch.nan))

    def losses(self, part: Part) -> tuple[Float[Tensor, " c"], Insight]:
        cheap, insight = self.screen.losses(part)
        now, before = cheap.detach(), self.risk[part.present].to(cheap.dtype)
        risk = torch.where(before.isnan(), now, KEEP * before + (1 - KEEP) * now)
        self.seen = part.present, risk
        chosen = riskiest(risk, self.refine)
        deep, _ = self.refined.losses(part.of(chosen))
        losses = self.screen.loss_scale * cheap
        return losses.masked_scatter(chosen, self.refined.loss_scale * deep), insight

    def observe(self, batch: Batch) -> None:
        if self.seen is not None and self.seen[1].isfinite().all():
            present, risk = self.seen
            self.risk[present] = risk.to(self.risk)
        self.seen = None
        self.refined.observe(batch)


def riskiest(risk: Float[Tensor, " c"], share: float) -> Bool[Tensor, " c"]:
    """The share of the classes, at least one, whose risk is highest."""
    count = max(1, math.ceil(round(share * len(risk), 9)))
    return torch.zeros_like(risk, dtype=torch.bool).index_fill(0, risk.topk(count).indices, True)
