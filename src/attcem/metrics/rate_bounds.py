"""How many nats of an image the released latent carries at most, judged on images that nothing was fitted to.

With z = ẑ + ε, ε ~ N(0, σ²I), and any density q of z: I(x;z) = E KL(p(z|x) ‖ p(z)) ≤ E KL(p(z|x) ‖ q), because what is
left out is KL(p(z) ‖ q) ≥ 0. A Gaussian mixture q makes this the rate bound (docs/theory.md#the-rate-bound), with
cross-entropies where the bound has entropies: so a poor fit, on however few samples, loosens the bound and cannot
break it.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from attcem.metrics.axes import along, clusters, principal_axes
from attcem.metrics.gaussians import Mixture, Parts, fit, fit_full, parts
from attcem.types import Latent

WIDEST = 4096  # dimensions of the largest covariance whose axes are computed: beyond, it would take minutes


class Nats(float):
    """An estimate in nats that remembers its standard error over the images it was judged on."""

    stderr: float

    @classmethod
    def of(cls, values: Float[Tensor, " n"]) -> Nats:
        """The mean of one value per image; information is never negative."""
        self = cls(max(0.0, values.mean().item()))
        self.stderr = values.std().item() / math.sqrt(len(values))
        return self


Fitted = tuple[Mixture, Float[Tensor, "j d"]]  # what was fitted, and the samples to judge it on


def diagonal(z: Latent, group: Int64[Tensor, " f"], groups: int, part: Parts, sigma: float) -> Fitted:
    """Every dimension by itself."""
    rows = z.flatten(1)
    return fit(rows[part.fit], group, groups), rows[part.judge]


def channel(z: Latent, group: Int64[Tensor, " f"], groups: int, part: Parts, sigma: float) -> Fitted:
    """Channels along their principal axes, the same at every position, or token, and every one of these by itself."""
    tokens, found = z if z.ndim == 3 else z.flatten(2).transpose(1, 2), len(part.axes)
    axes = principal_axes(tokens[part.axes], group[:found], groups, alike=True)
    return fit(along(tokens[part.spread], axes), group[found:], groups), along(tokens[part.judge], axes)


def gram(z: Latent, group: Int64[Tensor, " f"], groups: int, part: Parts, sigma: float) -> Fitted:
    """Full covariances: axes that the groups share, and turned for each group among the leading ones."""
    rows, found = z.flatten(1).unsqueeze(1), len(part.axes)
    axes = principal_axes(rows[part.axes], group[:found], groups)
    return fit_full(along(rows[part.fit], axes), group, groups, found, sigma), along(rows[part.judge], axes)


COVARIANCES = {"diag": diagonal, "channel": channel, "gram": gram}


def left_out(latent: tuple[int, ...]) -> dict[str, str]:
    """Which covariances a latent of this shape has no use or no time for, and why."""
    size, channels = math.prod(latent), latent[1] if len(latent) == 2 else latent[0]
    reasons = {}
    if len(latent) == 1:
        reasons["channel"] = "the latent has no positions: gram says the same"
    elif channels > WIDEST:
        reasons["channel"] = f"{channels} channels, more than the {WIDEST} whose covariance is computed"
    if size > WIDEST:
        reasons["gram"] = f"{size} dimensions, more than the {WIDEST} whose covariance is computed"
    return reasons


@torch.no_grad()
def rate_bounds(
    latents: Latent, labels: Int64[Tensor, " b"], classes: int, sigma: float, *, seed: int = 0
) -> dict[str, Nats]:
    """Assignment/covariance → upper bound on I(x;z) in nats, from clean latents of images the network has not seen.

    Each is an unbiased estimate of a number that is never below I(x;z): no noise, ValueError. Responsibilities are the
    best there are for every image, which is allowed because the bound holds for any.
    """
    if not latents.isfinite().all():
        raise ValueError("some latents are not finite: train again with a lower train.lr, or check the encoder")
    part = parts(len(latents), seed)
    z = latents - latents[part.fit].mean(0)
    skipped = left_out(tuple(latents.shape[1:]))
    own, rows = labels[part.fit], z[part.fit].flatten(1)
    assignments = {"one": (torch.zeros_like(own), 1), "class": (own, classes), "learned": clusters(rows, seed)}
    found = {}
    for assignment, (group, groups) in assignments.items():
        for covariance, describe in COVARIANCES.items():
            if covariance not in skipped:
                mixture, judged = describe(z, group, groups, part, sigma)
                found[f"{assignment}/{covariance}"] = Nats.of(mixture.nats(judged, sigma))
    return found
