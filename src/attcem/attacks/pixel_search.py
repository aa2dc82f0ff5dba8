"""Pixels that explain an observation and are likely: what is minimised, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from attcem.attacks.base import PerImage, Pictures
from attcem.attacks.errors import ErrorSpectrum
from attcem.attacks.match import Match
from attcem.types import Released

SMOOTH = 0.01  # differences of pixels below this count by their squares


def roughness(x: Pictures) -> PerImage:
    """Total variation Σ |x_i − x_j| over neighbouring pixels, smooth where a difference is below SMOOTH."""
    steps = x.diff(dim=2), x.diff(dim=3)
    return sum((torch.hypot(d, d.new_tensor(SMOOTH)) - SMOOTH).sum((1, 2, 3)) for d in steps)  # type: ignore[return-value]


@dataclass(frozen=True)
class Problem:
    """What is minimised for each image by itself: match(x, z) + anchor·unlikely(x − start) + tv·TV(x)."""

    match: Match
    unlikely: ErrorSpectrum
    z: Released
    start: Pictures
    anchor: PerImage
    tv: PerImage

    def __call__(self, x: Pictures) -> PerImage:
        return self.match(x, self.z) + self.anchor * self.unlikely(x - self.start) + self.tv * roughness(x)

    def split(self, size: int) -> Iterator[Problem]:
        fields = (part.split(size) for part in (self.z, self.start, self.anchor, self.tv))
        return (Problem(self.match, self.unlikely, *few) for few in zip(*fields, strict=True))

    @torch.no_grad()
    def lowest(self, ends: list[Tensor]) -> Pictures:
        """For each image that one of these which explains it best."""
        best = torch.stack([self(x) for x in ends]).argmin(0)
        return torch.stack(ends)[best, torch.arange(len(best), device=best.device)]


def adam(
    objective: Callable[[Tensor], Tensor], x: Tensor, steps: int, lr: float = 0.02, low: float = 0, high: float = 1
) -> tuple[Tensor, list[float]]:
    """Adam from x, put back into [low, high] after every step, while the learning rate falls to zero."""
    x = x.clone().requires_grad_()
    optimiser, values = torch.optim.Adam([x]), []
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = lr * min(1.0, 2 * (1 - step / steps))
        value = objective(x).sum()
        value.backward(inputs=[x])
        optimiser.step()
        optimiser.zero_grad()
        with torch.no_grad():
            x.clamp_(low, high)
        values.append(value.item())
    return x.detach(), values


def lbfgs(objective: Callable[[Tensor], Tensor], x: Tensor, steps: int) -> tuple[Tensor, list[float]]:
    """L-BFGS with strong Wolfe steps on u, x = sin²(u), which cannot leave [0,1].

    The images of one call share the length of their steps, so they are nearly, not quite, independent: a few at a
    time. Every evaluation sees the same release noise, without which no line search ends.
    """
    u = x.clamp(0.002, 0.998).sqrt().asin().requires_grad_()
    optimiser = torch.optim.LBFGS([u], max_iter=steps, history_size=20, line_search_fn="strong_wolfe")
    noise, values = int(torch.randint(2**31, ())), []
    # on a processor, its own generator alone: for every kind of GPU that is not there, the other notes a call stack
    draw_from = torch.default_generator.manual_seed if x.is_cpu else torch.manual_seed

    def evaluate() -> Tensor:
        draw_from(noise)
        value = objective(u.sin().square()).sum()
        optimiser.zero_grad()
        value.backward(inputs=[u])
        values.append(value.item())
        return value

    optimiser.step(evaluate)
    return u.detach().sin().square(), values


SOLVERS: dict[str, tuple[Callable[..., tuple[Tensor, list[float]]], int]] = {"adam": (adam, 32), "lbfgs": (lbfgs, 8)}
"""Solver → what returns the images and the objective as it went, and how many images to give it at a time."""
