"""What theory can say of any attack, today's or tomorrow's: the `bounds` of a result, in numbers, names and reasons."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from attcem.metrics.entropy import ROUNDING, image_prior
from attcem.metrics.fisher import fisher_bound
from attcem.metrics.image import Pictures
from attcem.metrics.rate_bounds import left_out, rate_bounds
from attcem.types import Latent

CANDIDATES = (100, 10_000, 1_000_000, 8_000_000_000)  # a class of pupils, a test set, a city, everyone
QUERIES = (1, 10)
ESTIMATE = "images taken for Gaussian in clusters: an attack that knows them better can go lower"


def mse_floor(rate_nats: float, entropy_nats: float, d: int) -> float:
    """MSE ≥ exp(2 (h(x) − I(x;z)) / d) / (2πe), for any attack (docs/theory.md#from-information-to-error)."""
    return math.exp(2 * (entropy_nats - rate_nats) / d) / (2 * math.pi * math.e)


def filled_floor(rate_nats: float, entropies: Float[Tensor, "k d"], share: Float[Tensor, " k"]) -> float:
    """MSE ≥ (1/d) Σ_k π_k Σ_i min(θ, N_ki), N = exp(2h)/(2πe), where θ spends the rate: Σ_k π_k Σ_i ½ log⁺(N_ki/θ) = I.

    Holds for any attack that is told the group k of the image, h_ki = h(x_i | x_1…x_{i−1}, k) along any axes:
    E(x̂_i − x_i)² ≥ N_ki exp(−2 I_ki) for I_ki = I(x_i; z | x_1…x_{i−1}, k); these sum to I(x;z|K) ≤ I(x;z), and
    spending them as water fills a vessel (Cover and Thomas, §10.3) is the best an attacker can hope for. With one
    group, never below `mse_floor`, which spends the same on every axis.
    """
    log_power, order = (2 * entropies - math.log(2 * math.pi * math.e)).flatten().sort(descending=True)
    weight = share.unsqueeze(1).expand_as(entropies).flatten()[order]
    log_power, weight = log_power[weight > 0], weight[weight > 0]
    log_level = (((weight * log_power).cumsum(0) - 2 * rate_nats) / weight.cumsum(0)).max()
    return (weight * log_power.minimum(log_level).exp()).sum().item() / entropies.shape[1]


def relative_floor(rate_here: float, rate_there: float, d: int) -> float:
    """exp(2 (I_there − I_here) / d): how much higher the floor is than at another rate, whatever h(x) may be."""
    return math.exp(2 * (rate_there - rate_here) / d)


def fano_success(nats: float, candidates: int) -> float:
    """The largest p with p log(pN) + (1−p) log((1−p)N/(N−1)) ≤ nats: no one picks the right one of N more often.

    Fano's inequality before it is simplified to p ≤ (nats + log 2)/log N; 1 says nothing.
    """
    if candidates < 2:
        raise ValueError(f"re-identification among {candidates} candidates is no question: give 2 or more")
    if nats >= math.log(candidates):
        return 1.0
    low, high = 1 / candidates, 1.0
    for _ in range(100):
        p = (low + high) / 2
        told = p * math.log(p * candidates)
        told += (1 - p) * math.log((1 - p) * candidates / (candidates - 1)) if p < 1 else 0.0
        low, high = (p, high) if told <= nats else (low, p)
    return high


def fano_reidentification(
    rate_nats: float, candidates: Sequence[int] = CANDIDATES, queries: Sequence[int] = QUERIES
) -> dict[str, list[Any]]:
    """Columns of a table: how often an image can be found among N when its latent was sent k times, at most."""
    pairs = [(n, k) for n in candidates for k in queries]
    success = [fano_success(k * rate_nats, n) for n, k in pairs]
    among, sent, vacuous = [n for n, _ in pairs], [k for _, k in pairs], [p >= 1 for p in success]
    return {"candidates": among, "queries": sent, "success": success, "vacuous": vacuous}


def bounds(
    latents: Latent,
    labels: Int64[Tensor, " b"],
    classes: int,
    sigma: float,
    images: Pictures,
    *,
    encode: Callable[[Pictures], Latent] | None = None,
    not_counted: Sequence[str] = (),
    jacobians: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Everything that is known without attacking, from clean latents of held-out images and these images' pixels.

    `encode` is the clean encoder, differentiable and in evaluation mode; without it there is no Fisher bound.
    `not_counted` names what the release chain does after the Gaussian noise: it can only lower the rate, by how much is
    not said, and alone it gives no bound.
    """
    about = {"sigma": sigma, "gaussian_only": True, "not_counted": list(not_counted)}
    if not sigma > 0:
        return about | {"rate": None, "why": "no noise: no bound"}
    rates = rate_bounds(latents, labels, classes, sigma, seed=seed)
    form = min(rates, key=lambda name: rates[name])
    rate, d = float(rates[form]), images[0].numel()
    prior = image_prior(images, seed=seed)
    found = about | {
        "rate_nats": rate,
        "rate_stderr": rates[form].stderr,
        "rate_form": form,
        "rate": {name: float(nats) for name, nats in rates.items()},
        "rate_left_out": left_out(tuple(latents.shape[1:])),
        "entropy_nats": prior.total,
        "entropy_how": prior.how,
        "mse_floor_estimate": max(0.0, filled_floor(rate, prior.entropy, prior.share) - ROUNDING**2),
        "mse_floor_even_estimate": max(0.0, mse_floor(rate, prior.total, d) - ROUNDING**2),
        "mse_floor_why": ESTIMATE,
        "fano": fano_reidentification(rate),
    }
    if encode is not None:
        drawn = images[torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))[:jacobians]]
        found["fisher"] = fisher_bound(encode, drawn, sigma, prior=prior, seed=seed) | {"why": ESTIMATE}
    return found
