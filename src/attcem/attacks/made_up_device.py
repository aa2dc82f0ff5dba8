"""A device of the attacker's own making, for whoever may not query the real one."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attcem.attacks.observed import Encoder, Observed
from attcem.maths import gaussian_like
from attcem.types import Latent, Recording, Released, View


class Network(nn.Module):
    """A substitute encoder: 3×3 convolutions, halving the picture down to the latent's grid."""

    def __init__(self, image: tuple[int, int, int], observed: Observed, channels: int) -> None:
        super().__init__()
        latent, (width, *sides) = observed.latents.shape[1:], image
        self.squash = observed.squash
        grid = list(latent[1:]) if len(latent) == 3 else [4, 4]
        layers: list[nn.Module] = [*convolution(width, channels)]
        width = channels
        while all(side >= 2 * cells for side, cells in zip(sides, grid, strict=True)):
            wider = min(2 * width, 4 * channels)
            layers += [nn.MaxPool2d(2, ceil_mode=True), *convolution(width, wider)]
            width, sides = wider, [math.ceil(side / 2) for side in sides]
        if sides != grid:
            layers.append(nn.AdaptiveAvgPool2d((grid[0], grid[1])))
        if len(latent) == 3:
            last: list[nn.Module] = [nn.Conv2d(width, latent[0], 3, padding=1)]
        else:
            flat = nn.Linear(width * math.prod(grid), math.prod(latent))
            last = [nn.Flatten(), flat, nn.Unflatten(1, tuple(latent))]
        self.layers = nn.Sequential(*layers, *last)

    def forward(self, x: Float[Tensor, "b c h w"]) -> Latent:
        """Clean latents."""
        return self.squash(self.layers(x - 0.5))


def convolution(narrow: int, wide: int) -> tuple[nn.Module, ...]:
    """One layer as most backbones have it."""
    return nn.Conv2d(narrow, wide, 3, padding=1), nn.BatchNorm2d(wide), nn.ReLU()


def made_up(view: View, observed: Observed, encoder: Encoder, distrust: float) -> View:
    """What an attacker with an oracle would see, were the encoder the device's but for so much distrust."""
    noise = torch.hypot(observed.noise, (distrust * observed.spread).expand_as(observed.noise))
    return View(view.public, MadeUpOracle(encoder, noise), view.targets, view.cloud)


class MadeUpOracle:
    """An oracle that the attacker made: an encoder that may be the device's, and noise like the device's."""

    def __init__(self, encoder: Encoder, noise: Float[Tensor, "*latent"]) -> None:
        self.encode, self.noise = torch.no_grad()(encoder), noise

    def release(self, z: Latent, repeats: int) -> Released:
        """The mean of so many noisy copies."""
        return z + self.noise * gaussian_like(z) / math.sqrt(repeats)

    def __call__(self, x: Float[Tensor, "b c h w"], repeats: int = 1) -> Released:
        """What the device might send."""
        return self.release(self.encode(x), repeats)

    def record(self, batches: Iterable[Float[Tensor, "b c h w"]]) -> Recording:
        """Encoded once, released afresh."""
        latents = torch.cat([self.encode(x) for x in batches])
        return lambda index, repeats=1: self.release(latents[index], repeats)
