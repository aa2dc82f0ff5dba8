"""The variance above which a feature counts as leaking: four ways to choose θ (maths §2, Threshold)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from attcem.maths.gates import Scalar, variance_threshold

CONSTANT = 0.05
HIGHEST = 1.0
"""Where the schedule starts: the variance of a normalised feature."""


@dataclass(frozen=True)
class Circumstances:
    """What a threshold may depend on besides the variances: noise, τ, γ, and the share of training that is done."""

    sigma: float
    var_threshold: float
    gamma: float
    progress: float = 0.0

    @property
    def hidden(self) -> float:
        """θ of the noise: max(τ·σ_n², 1e-8) + γ."""
        return variance_threshold(self.sigma, self.var_threshold, self.gamma)


Threshold = Callable[[Float[Tensor, "*n"], Circumstances], Scalar]


def noise(var: Float[Tensor, "*n"], now: Circumstances) -> Scalar:
    """max(τ·σ_n², 1e-8) + γ: what the noise hides."""
    return now.hidden


def constant(var: Float[Tensor, "*n"], now: Circumstances) -> Scalar:
    """0.05, whatever the noise."""
    return CONSTANT


def schedule(var: Float[Tensor, "*n"], now: Circumstances) -> Scalar:
    """Falls geometrically over training, from 1 to what the noise hides."""
    return HIGHEST ** (1 - now.progress) * now.hidden**now.progress


def quantile(var: Float[Tensor, "*n"], now: Circumstances) -> Scalar:
    """The batch's median variance: half of the features are always too wide, however narrow they are."""
    return var.detach().median() + now.gamma


THRESHOLDS: dict[str, Threshold] = {"noise": noise, "constant": constant, "schedule": schedule, "quantile": quantile}

NEED_NOISE = {"noise", "schedule"}
