"""When does a variance count as leaking: thresholds θ, hinges and gates (docs/surrogates.md)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

Scalar = float | Float[Tensor, ""]  # a setting, or a parameter that is learned


def variance_threshold(sigma: float, var_threshold: float, gamma: float) -> float:
    """θ = max(τ·σ_n², 1e-8) + γ: the variance below which the noise hides a feature."""
    if not sigma > 0:
        raise ValueError(
            f"a threshold of noise variance needs noise, but sigma is {sigma}: θ would be about {1e-8 + gamma:g} and "
            "every class would look too wide; add Noise(sigma=0.1), or choose a threshold that ignores the noise"
        )
    return max(var_threshold * sigma**2, 1e-8) + gamma


def hinge(var: Float[Tensor, "*n"], threshold: Scalar, gamma: float) -> Float[Tensor, "*n"]:
    """ReLU( log(σ²+γ) − log θ ): nothing below the threshold, and no pull."""
    return (torch.log(var + gamma) - log_of(threshold, var)).relu()


def excess(
    var: Float[Tensor, "*n"], threshold: Scalar, gamma: float, beta: Scalar = 1.0, margin: Scalar = 0.1
) -> Float[Tensor, "*n"]:
    """softplus( β(log(σ²+γ) − log θ − m) ) / β: the hinge with a soft corner, γ keeping a constant feature finite."""
    return F.softplus(beta * (torch.log(var + gamma) - log_of(threshold, var) - margin)) / beta


def snr_gate(
    mu: Float[Tensor, "*n"], var: Float[Tensor, "*n"], kappa: Scalar = 10.0, t: Scalar = 0.3, eps: float = 1e-6
) -> Float[Tensor, "*n"]:
    """sigmoid( κ(σ²/(μ²+ε) − t) ): open where a feature varies much against its mean."""
    return torch.sigmoid(kappa * (var / (mu.square() + eps) - t))


def class_gate(share: Float[Tensor, "*n"], a: Scalar = 10.0, b: Scalar = 0.05) -> Float[Tensor, "*n"]:
    """sigmoid( a(M/B − b) ): open for classes that fill enough of the batch to be estimated."""
    return torch.sigmoid(a * (share - b))


def log_of(value: Scalar, like: Tensor) -> Tensor:
    return torch.as_tensor(value, dtype=like.dtype, device=like.device).log()


@dataclass(frozen=True)
class Circumstances:
    """What a threshold may depend on besides the variances: noise, τ, γ, and the share of training that is done."""

    sigma: float
    var_threshold: float
    gamma: float
    progress: float = 0.0

    @property
    def hidden(self) -> float:
        return variance_threshold(self.sigma, self.var_threshold, self.gamma)


THRESHOLDS: dict[str, Callable[[Float[Tensor, "*n"], Circumstances], Scalar]] = {
    "noise": lambda var, now: now.hidden,
    "constant": lambda var, now: 0.05,
    # Falls geometrically over training, from 1, the variance of a normalised feature, to what the noise hides.
    "schedule": lambda var, now: now.hidden**now.progress,
    # The batch's median variance: half of the features are always too wide, however narrow they are.
    "quantile": lambda var, now: var.detach().median() + now.gamma,
}
"""θ, the variance above which a feature counts as leaking."""

NEED_NOISE = {"noise", "schedule"}
