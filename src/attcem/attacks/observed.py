"""What an attacker that may not query has seen on the wire, and what that betrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor

from attcem.attacks.base import Pictures, noise_variance
from attcem.attacks.grid import identity
from attcem.attacks.likeness import unnatural
from attcem.maths import gaussian_like
from attcem.types import Latent, Released, View

Encoder = Callable[[Pictures], Latent]

RESENT, BEYOND = 256, 5.0
"""Targets sent twice to measure the noise; standard deviations of it by which a value may leave its range."""
NATURAL = 0.25  # pictures whose mean, patch spectrum and roughness differ by less than this are of the same kind


@dataclass(frozen=True)
class Observed:
    """What the attacker has seen on the wire: latents, how noisy they are, and what the cloud makes of them."""

    latents: Released
    noise: Float[Tensor, "*latent"]
    classes: Int64[Tensor, " n"]

    @classmethod
    @torch.no_grad()
    def of(cls, view: View) -> Observed:
        """The noise is the difference of two sends of the same images, over √2."""
        if view.cloud is None:
            raise ValueError("a substitute learns through the cloud half: give the view its cloud")
        noise = torch.zeros_like(view.targets[0])
        if view.resend is not None:
            again = view.resend(min(RESENT, len(view.targets)))
            variance = noise_variance(again, view.targets[: len(again)])
            noise = (variance.mean((-2, -1), keepdim=True) if variance.ndim == 3 else variance).sqrt().expand_as(noise)
        return cls(view.targets, noise, torch.cat([view.cloud(part).argmax(1) for part in view.targets.split(256)]))

    @property
    def spread(self) -> Float[Tensor, "*channels"]:
        """Deviation of every channel; of every value where a latent is flat."""
        return self.latents.std([0, *range(2, self.latents.ndim)], correction=0, keepdim=True)[0].clamp_min(1e-6)

    @property
    def silent(self) -> bool:
        total, noise = self.latents.var(0, correction=0).sum(), self.noise.square().sum()
        return bool(total <= (1 + 4 * math.sqrt(2 / self.latents.numel())) * noise + 1e-12)

    @property
    def squash(self) -> Callable[[Tensor], Tensor]:
        """The activation that the observed range betrays."""
        slack = BEYOND * self.noise.max()
        low, high = self.latents.min() + slack, self.latents.max() - slack
        if high <= 1 and self.latents.max() > 0.5 and low >= -1:
            return torch.sigmoid if low >= 0 else torch.tanh
        return torch.relu if low >= 0 else identity

    def like(self, classes: Int64[Tensor, " b"]) -> Released:
        """Latents drawn at random, of these predicted classes where any was seen."""
        same = (classes[:, None] == self.classes).float()
        same[same.sum(1) == 0] = 1.0
        return self.latents[torch.multinomial(same, 1)[:, 0]]


@torch.no_grad()
def as_picture(view: View, observed: Observed) -> Encoder | None:
    """The encoder that would send pictures as they are, or stretched, if the observed latents look like that."""
    (colours, height, width), latent = view.public.shape, tuple(observed.latents.shape[1:])
    fold = math.isqrt(latent[0] // colours) if len(latent) == 3 else 0
    if fold < 1 or latent != (colours * fold**2, height / fold, width / fold):
        return None
    plain = F.pixel_unshuffle(view.public.pixels().to(view.targets.device), fold)
    each = [0, 2, 3]
    signal = (observed.latents.var(each, correction=0) - observed.noise.square().mean((1, 2))).clamp_min(0)
    scale = (signal / plain.var(each, correction=0).clamp_min(1e-8)).sqrt()[:, None, None]
    offset = observed.latents.mean(each)[:, None, None] - scale * plain.mean(each)[:, None, None]
    for gain, shift in ((torch.ones_like(scale), torch.zeros_like(offset)), (scale, offset)):
        sent = gain * plain + shift
        sent = sent + observed.noise * gaussian_like(sent)
        if unnatural(F.pixel_shuffle(observed.latents, fold), F.pixel_shuffle(sent, fold)) < NATURAL:
            return lambda x, gain=gain, shift=shift: gain * F.pixel_unshuffle(x, fold) + shift  # type: ignore[misc]
    return None
