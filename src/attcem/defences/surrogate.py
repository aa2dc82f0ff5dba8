"""What all conditional-entropy penalties share: which samples count, how losses add up, what is kept for the log."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from attcem.defences.base import NOISE, Defence, nothing
from attcem.layers import TOKENS, WIDEST, Tokens
from attcem.maths import diagonal_rate, entropy, moments, rate_bound, segment_count, segment_sum
from attcem.maths.gates import NEED_NOISE, THRESHOLDS, Circumstances, Scalar
from attcem.naming import look_up
from attcem.types import Batch, Latent


@dataclass(frozen=True)
class Part:
    """The samples of classes that can be estimated, the classes renumbered 0 … c−1."""

    z: Latent
    y: Int64[Tensor, " n"]
    present: Int64[Tensor, " c"]  # the classes' own numbers
    p: Float[Tensor, " c"]  # M / B, a class's share of the whole batch
    progress: float = 0.0  # share of training done

    @property
    def classes(self) -> int:
        return len(self.present)

    def of(self, chosen: Bool[Tensor, " c"]) -> Part:
        kept = chosen[self.y]
        renumber = chosen.cumsum(0) - 1
        return Part(self.z[kept], renumber[self.y[kept]], self.present[chosen], self.p[chosen], self.progress)


@dataclass(frozen=True)
class Insight:
    """What a surrogate looked at on its way to the losses."""

    weight: Float[Tensor, "n t"] | None = None
    """Attention on each token, 1 over a class; nothing where all weigh the same."""
    resp: Float[Tensor, "n t k"] | None = None  # responsibilities of slots or clusters
    gates: dict[str, Tensor] = field(default_factory=dict)  # name → values between 0 (shut) and 1 (open), of any shape


class Surrogate(Defence, ABC):
    """A penalty on the clean latents of a batch, class by class, in place of the conditional entropy h(x|z).

    A subclass says what each class loses (`losses`); the total is Σ p_c L_c / Σ p_c. A class with fewer than two
    samples is left out.
    """

    loss_scale: float = 1.0
    threshold: str = "noise"
    var_threshold: float = 0.125
    gamma: float = 1e-6
    least: int = 2  # samples without which a class is left out
    bounds_information: bool = False  # whether the value stays an upper bound on I(x;z), whatever its own parameters do

    def count_above(self, threshold: str, var_threshold: float, gamma: float) -> None:
        """Keep what θ depends on, and ask for noise where that does."""
        look_up("threshold", threshold, THRESHOLDS)
        self.threshold, self.var_threshold, self.gamma = threshold, var_threshold, gamma
        self.needs = frozenset([NOISE] * (threshold in NEED_NOISE))

    def setup(self, *, latent: Sequence[int], classes: int, sigma: float) -> None:
        if NOISE in self.needs and not sigma > 0:
            raise ValueError(
                f"{self.kind} needs noise, but the chain's sigma is {sigma}: without it any latent can carry "
                "everything, and every class looks too wide; add Noise to the chain, as in "
                f'Noise(sigma=0.1) + create_defence("{self.kind}")'
            )
        self.classes, self.sigma_n = classes, sigma
        self.build(tuple(latent))

    def build(self, latent: tuple[int, ...]) -> None:
        """Make parameters for latents of this shape."""

    @abstractmethod
    def losses(self, part: Part) -> tuple[Float[Tensor, " c"], Insight]:
        """What each class of the part loses, and how that was found."""

    def total(self, part: Part, losses: Float[Tensor, " c"]) -> Float[Tensor, ""]:
        return (part.p * losses).sum() / part.p.sum()

    def theta(self, var: Float[Tensor, "*n"], part: Part) -> Scalar:
        now = Circumstances(self.sigma_n, self.var_threshold, self.gamma, part.progress)
        return THRESHOLDS[self.threshold](var, now)

    def active(self, insight: Insight, batch: Batch) -> bool:
        """Whether this batch is penalised at all."""
        return True

    def part(self, batch: Batch) -> Part | None:
        """The samples whose class has at least `least` of them in the batch."""
        count = segment_count(batch.y, self.classes)
        kept = (count >= self.least)[batch.y]
        if not kept.any():
            return None
        # Only classes that are kept cost anything: of 10 or of 600, a batch holds at most as many as samples.
        present, y = batch.y[kept].unique(return_inverse=True)
        z = batch.z[kept].to(torch.promote_types(batch.z.dtype, torch.float32))
        return Part(z, y, present, count[present].to(z.dtype) / len(batch.y), batch.progress)

    def value(self, batch: Batch) -> Float[Tensor, ""]:
        """The surrogate's number for a batch, before anything decides whether it counts."""
        part = self.part(batch)
        return nothing(batch.z) if part is None else self.total(part, self.losses(part)[0])

    def penalty(self, batch: Batch) -> Float[Tensor, ""]:
        """The scaled value; zero where there is none, or while it is shut off."""
        part = self.part(batch)
        if part is None:
            return nothing(batch.z)
        with torch.autocast(batch.z.device.type, enabled=False):
            losses, insight = self.losses(part)
            value = self.loss_scale * self.total(part, losses)
        if not value.isfinite():
            return value
        if batch.watched:
            with torch.no_grad():
                batch.readings.update(self.read(part, losses, insight))
        return value if self.active(insight, batch) else nothing(batch.z)

    def read(self, part: Part, losses: Float[Tensor, " c"], insight: Insight) -> dict[str, Tensor]:
        """Figures for the log: numbers, and vectors whose length never changes."""
        z = part.z.flatten(1)
        var = moments(z, part.y, part.classes).var.squeeze(1)
        share = part.p / part.p.sum()
        found = {"intra_mse": (part.p * var.mean(1)).sum()}
        if self.sigma_n > 0:
            found["rate_nats"] = rate_bound(entropy(share), share, diagonal_rate(var, self.sigma_n))
        if insight.weight is not None:
            # Inside each class, over that of equal attention: 1 is even, 0 is a single token.
            count = segment_count(part.y, part.classes) * insight.weight.shape[1]
            inside = segment_sum(entropy(insight.weight), part.y, part.classes) / count.clamp_min(2).log()
            found["attention_entropy"] = (share * inside).sum()
        if insight.resp is not None:
            found["slot_mass"] = insight.resp.mean((0, 1))
            found["slot_entropy"] = entropy(insight.resp).mean() / math.log(max(2, insight.resp.shape[2]))
        for name, gate in insight.gates.items():
            found[f"{name}_gate"] = gate.mean()
            found[f"{name}_gate_histogram"] = torch.histc(gate.float(), 16, 0.0, 1.0) / gate.numel()
        return found


class Attentive(Surrogate):
    """A surrogate that sees the latent as tokens and looks at them with attention of its own."""

    tokens: str
    width: int
    attentive: bool = True

    def build(self, latent: tuple[int, ...]) -> None:
        self.tokenise: Tokens = look_up("tokens", self.tokens, TOKENS)(latent, self.width)
        if self.attentive and self.tokenise.width > WIDEST:
            others = " or ".join(f'tokens="{name}"' for name in TOKENS if name != self.tokens)
            raise ValueError(
                f'attention over tokens="{self.tokens}" of {self.tokenise.width} numbers each would need too many '
                f"weights (the limit is {WIDEST}): use {others}, or a bottleneck"
            )
        self.attend_to(self.tokenise.width)

    @abstractmethod
    def attend_to(self, width: int) -> None:
        """Make the attention for tokens of this width."""
