"""Untrained-network attack: a convolutional network that has seen no image is prior enough."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attcem.attacks.base import WHITE_BOX, Attack, Pictures, Reconstruction, seeded
from attcem.attacks.inverter import zeroed
from attcem.attacks.match import Match
from attcem.attacks.pairs import hold_out
from attcem.progress import bar
from attcem.types import Released, View

COARSEST, TOGETHER, MEMORY = 4, 16, 0.95
"""Sides of a generator's input; targets in one batch; how much of the average image outlives a step."""


class Generators(nn.Module):
    """One small network per target, each from the same fixed noise to an image; they start as the mean image.

    They lie side by side as the groups of one network: noise → (convolve, normalise, gelu, twice the size)* → image.
    """

    mean: Tensor
    noise: Tensor

    def __init__(self, count: int, mean: Float[Tensor, "c h w"], channels: int) -> None:
        super().__init__()
        self.count, wide = count, count * channels
        self.sizes = [tuple(mean.shape[1:])]
        while min(self.sizes[0]) > COARSEST:
            self.sizes.insert(0, tuple(math.ceil(side / 2) for side in self.sizes[0]))
        self.register_buffer("mean", mean)
        self.register_buffer("noise", torch.randn(1, channels, *self.sizes[0]).repeat(1, count, 1, 1).to(mean))
        self.levels = nn.ModuleList(nn.Conv2d(wide, wide, 3, padding=1, groups=count) for _ in self.sizes)
        self.norms = nn.ModuleList(nn.InstanceNorm2d(wide, affine=True) for _ in self.sizes)
        self.out = zeroed(nn.Conv2d(wide, count * len(mean), 1, groups=count))
        self.to(mean.device)

    def forward(self) -> Pictures:
        x = self.noise
        for size, level, norm in zip(self.sizes, self.levels, self.norms, strict=True):
            x = F.gelu(norm(level(F.interpolate(x, size=size, mode="bilinear"))))
        return self.mean + self.out(x).unflatten(1, (self.count, -1))[0]


def averages(match: Match, z: Released, mean: Float[Tensor, "c h w"], channels: int, lr: float) -> Iterator[Pictures]:
    """Without end: fit generators to the observations, and yield their running average images; the mean image first."""
    generators = Generators(len(z), mean, channels)
    parameters = list(generators.parameters())
    optimiser, average = torch.optim.Adam(parameters, lr=lr), mean.expand(len(z), -1, -1, -1)
    while True:
        yield average.clamp(0, 1)
        x = generators()
        match(x, z).sum().backward(inputs=parameters)
        optimiser.step()
        optimiser.zero_grad()
        average = MEMORY * average + (1 - MEMORY) * x.detach()


@dataclass(frozen=True)
class Untrained(Attack):
    """Fits an untrained convolutional generator to each observation: its structure is the prior (deep image prior).

    Fitted for too long it also fits the noise. How long serves best is found on held-out public images, released
    once as the targets were. (Ulyanov et al., Deep Image Prior, CVPR 2018.)
    """

    needs = WHITE_BOX

    images: int = 16
    channels: int = 32
    steps: int = 600
    lr: float = 0.005
    draws: int = 8
    tuning: int = 8  # public images to find the stopping step with

    @property
    def effort(self) -> float:
        return 2 * self.steps * (self.images + self.tuning)  # every step goes through a generator as well

    def brief(self) -> Untrained:
        return replace(self, images=min(4, self.images), tuning=2, steps=250)

    def __call__(self, view: View, *, seed: int = 0, progress: bool = False) -> Reconstruction:
        if view.oracle is None:
            raise ValueError("this attack tunes itself by queries: choose the threat model white_box")
        with seeded(seed):
            match, where = Match(view, seed, self.draws), view.targets.device
            mean = view.public.mean().to(where)
            truth = hold_out(view.public, seed)[1][: self.tuning].pixels().to(where)
            tried = self.fitted(match, view.oracle(truth), mean, self.steps, progress)
            curve = [(guess - truth).square().mean().item() for guess in tried]
            best = curve.index(min(curve))
            found = []
            for z in view.targets[: self.images].split(TOGETHER):
                *_, guess = self.fitted(match, z, mean, best, progress)
                found.append(guess)
        flag = "still improving at the last step; more steps may find more"
        shown, gain = curve[:: max(1, self.steps // 20)], 1 - curve[best] / curve[best // 2]
        return Reconstruction(torch.cat(found), shown, [flag] if best > 0.95 * self.steps else [], gain)

    def fitted(self, match: Match, z: Released, mean: Tensor, steps: int, progress: bool) -> Iterator[Tensor]:
        with bar("untrained network", steps, unit="steps", shown=progress) as show:
            for step, guess in enumerate(islice(averages(match, z, mean, self.channels, self.lr), steps + 1)):
                show(step)
                yield guess
