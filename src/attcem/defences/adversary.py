"""The adversary of a training run: a decoder that learns to see the image in what is released, by its own means."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

from attcem.maths.similarity import structural_similarity
from attcem.types import Released

PLANES = 4  # colour planes that are painted: as many as an image has are compared, the others mean nothing

GRID = 4  # side of the grid on which a latent without positions is laid out

Pictures = Float[Tensor, "b c h w"]
Numbers = Float[Tensor, " n"]
Score = Callable[[Pictures, Pictures], Tensor]  # of all guesses together, or one for each, whose mean counts


@dataclass(frozen=True)
class Metric:
    """How well an image was guessed, whether a good guess scores high (+1) or low (−1), and what is harmless."""

    score: Score
    sign: int
    threshold: float


METRICS: Mapping[str, Metric] = {
    "ssim": Metric(structural_similarity, sign=1, threshold=0.3),
    "mse": Metric(F.mse_loss, sign=-1, threshold=0.05),
}


def adam_step(
    gradient: Numbers, first: Numbers, second: Numbers, step: int, lr: float
) -> tuple[Numbers, Numbers, Numbers]:
    """Change of the weights and both moments after Adam's step number 1, 2, …: −lr · m̂ / (√v̂ + 1e-8)."""
    first = 0.9 * first + (1 - 0.9) * gradient
    second = 0.999 * second + (1 - 0.999) * gradient**2
    spread = (second / (1 - 0.999**step)).sqrt() + 1e-8
    return -lr * first / (1 - 0.9**step) / spread, first, second


def standardised(z: Released) -> Released:
    """(z − mean) / √(var + 1e-5) of every channel of a map, or of every number: an encoder gains nothing by scaling."""
    over = [0, 2, 3] if z.ndim == 4 else [0]
    centred = z - z.mean(over, keepdim=True)
    return centred / (centred.square().mean(over, keepdim=True) + 1e-5).sqrt()


class Residual(nn.Module):
    """x + conv(relu(conv(x))), which starts as x."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        nn.init.zeros_(self.second.weight)

    def forward(self, x: Pictures) -> Pictures:
        return x + self.second(F.relu(self.first(x)))


class Painter(nn.Module):
    """Residual blocks on the latent's own grid, then one and the same doubling, as often as the image needs.

    Its weights depend on the latent's shape only, so that it can be made before anyone has seen an image.
    """

    def __init__(self, latent: Sequence[int], channels: int, blocks: int) -> None:
        super().__init__()
        self.stem: nn.Module = (
            nn.Conv2d(latent[0], channels, 3, padding=1)
            if len(latent) == 3
            else nn.Sequential(
                nn.Flatten(), nn.Linear(math.prod(latent), channels * GRID**2), nn.Unflatten(1, (channels, GRID, GRID))
            )
        )
        self.body = nn.Sequential(*(Residual(channels) for _ in range(blocks)))
        self.enlarge = nn.Sequential(nn.ReLU(), nn.Conv2d(channels, 4 * channels, 3, padding=1), nn.PixelShuffle(2))
        self.out = nn.Sequential(nn.ReLU(), nn.Conv2d(channels, PLANES, 3, padding=1), nn.Sigmoid())

    def forward(self, released: Released, image: Sequence[int]) -> Pictures:
        planes, *size = image
        if planes > PLANES:
            raise ValueError(f"the adversary paints at most {PLANES} colour planes, and these images have {planes}")
        x = self.body(self.stem(released))
        while x.shape[2] < size[0] or x.shape[3] < size[1]:
            x = self.enlarge(x)
        guess = self.out(x)[:, :planes]
        return guess if [*guess.shape[2:]] == size else F.interpolate(guess, size, mode="bilinear")


class Adversary(nn.Module):
    """A painter and the Adam that trains it: no other optimiser and no other loss ever moves its weights.

    The weights ask for no gradient and are read detached, so that none reaches them while a defence learns from its
    guesses; Adam's moments are buffers beside them, so that a checkpoint of the defence holds all there is.
    """

    first: Tensor
    second: Tensor
    steps: Tensor

    def __init__(self, latent: Sequence[int], channels: int, blocks: int, lr: float) -> None:
        super().__init__()
        self.lr = lr
        self.painter = Painter(latent, channels, blocks).requires_grad_(False)
        size = sum(p.numel() for p in self.painter.parameters())
        self.register_buffer("first", torch.zeros(size))
        self.register_buffer("second", torch.zeros(size))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, released: Released, x: Pictures, score: Score) -> Float[Tensor, ""]:
        """How well it guesses these images: a number that depends on what was released, not on the weights."""
        weights = {name: p.detach() for name, p in self.painter.named_parameters()}
        return self.judge(weights, standardised(released), x, score)

    def judge(self, weights: dict[str, Tensor], released: Released, x: Pictures, score: Score) -> Float[Tensor, ""]:
        guess = functional_call(self.painter, weights, (released.to(self.first), x.shape[1:]))
        return score(guess, x.to(self.first)).mean()

    def learn(self, released: Released, x: Pictures, metric: Metric) -> None:
        _, gradient, _ = self.gradients(standardised(released), x, lambda *both: -metric.sign * metric.score(*both))
        self.step(gradient)

    def gradients(self, seen: Released, x: Pictures, loss: Score) -> tuple[Float[Tensor, ""], Numbers, Released]:
        """A loss of its guesses, with its gradients at the weights, in one row, and at what it saw."""
        weights = {name: p.detach().requires_grad_() for name, p in self.painter.named_parameters()}
        seen = seen.detach().requires_grad_()
        with torch.enable_grad():
            value = self.judge(weights, seen, x, loss)
            *found, pull = torch.autograd.grad(value, [*weights.values(), seen])
        return value.detach(), torch.cat([part.flatten() for part in found]), pull

    @torch.no_grad()
    def step(self, gradient: Numbers) -> None:
        """One step of Adam; a gradient that is not finite changes nothing."""
        if not gradient.norm().isfinite():
            return
        self.steps += 1
        change, first, second = adam_step(gradient, self.first, self.second, int(self.steps), self.lr)
        self.first.copy_(first), self.second.copy_(second)
        weights = list(self.painter.parameters())
        for p, part in zip(weights, change.split([p.numel() for p in weights]), strict=True):
            p.data.add_(part.view_as(p))
