"""How far the encoder's slope against the noise limits any attack: the van Trees inequality, for Gaussian images."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from attcem.maths import segment_count, segment_sum
from attcem.maths.rate import noise_variance
from attcem.metrics.entropy import ROUNDING, Prior, image_prior
from attcem.metrics.image import Pictures
from attcem.types import Latent

AT_ONCE = 64
Encode = Callable[[Pictures], Latent]


def fisher_bound(
    encode: Encode, images: Pictures, sigma: float, *, prior: Prior | None = None, probes: int = 4, seed: int = 0
) -> dict[str, float]:
    """No attack's mean MSE per pixel is lower than (1/d) Σ_i 1/(F_ii + 1/σ_i²), were the images those of the prior.

    F = E JᵀJ/σ², J the encoder's Jacobian, and σ_i² the images' variance along axis i (van Trees 1968, one axis at a
    time: [(F+P)⁻¹]_ii ≥ 1/(F+P)_ii; never below the trace form d/(tr F + tr P)). Of several Gaussians the attacker is
    told the right one, and the mean is over them. The encoder must treat images one by one (evaluation mode). Without a
    prior one is made from the same images.
    """
    noise = noise_variance(sigma)
    prior = image_prior(images, seed=seed) if prior is None else prior
    owner = prior.mixture.surprise(prior.along(images - prior.mean), ROUNDING).argmin(1)
    groups = len(prior.share)
    slopes = squared_slopes(encode, images, owner, prior, probes, seed) / noise
    n, d = slopes.shape
    count = segment_count(owner, groups).clamp_min(1).unsqueeze(1)
    fisher = segment_sum(slopes, owner, groups) / count
    apart = slopes - fisher[owner]
    error = segment_sum(apart.square(), owner, groups) / (count - 1).clamp_min(1) / count
    information = 1 / (prior.mixture.var + ROUNDING**2)
    limit = 1 / (fisher + information)
    # 1/(F + P) bends upwards, so an F with an error gives too much on average: E 1/F̂ ≈ 1/F + Var(F̂)/F³.
    floors = (limit - limit**3 * error).sum(1) / d - ROUNDING**2
    influence = floors[owner] - (limit.square()[owner] * apart).sum(1) / d
    trace = slopes.sum(1)
    return {
        "mse": max(0.0, floors[owner].mean().item()),
        "stderr": influence.std().item() / math.sqrt(n),
        "trace": trace.mean().item(),
        "trace_stderr": trace.std().item() / math.sqrt(n),
        "prior_trace": information.sum(1)[owner].mean().item(),
        "images": n,
        "probes": probes,
    }


def squared_slopes(
    encode: Encode, images: Pictures, owner: Int64[Tensor, " n"], prior: Prior, probes: int, seed: int
) -> Float[Tensor, "n d"]:
    """Of each image, an unbiased estimate of (JᵀJ)_ii along its Gaussian's axes.

    Hutchinson: E (Jᵀv)_i² = (JᵀJ)_ii for random signs v.
    """
    generator, found = torch.Generator().manual_seed(seed), []
    for some, own in zip(images.split(AT_ONCE), owner.split(AT_ONCE), strict=True):
        x = some.detach().clone().requires_grad_()
        with torch.enable_grad():
            z = encode(x)
        total = []
        for probe in range(probes):
            signs = torch.randint(0, 2, z.shape, generator=generator).mul(2).sub(1).to(z)
            pulled = torch.zeros_like(x)
            if z.requires_grad:  # else the encoder ignores the images
                again = probe < probes - 1
                (pulled,) = torch.autograd.grad(z, x, signs, retain_graph=again, materialize_grads=True)
            total.append(prior.turned(pulled, own).square())
        found.append(torch.stack(total).mean(0))
    return torch.cat(found)
