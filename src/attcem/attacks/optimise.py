"""Optimisation attack: search the pixels whose released encoding is the one observed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from attcem.attacks.base import WHITE_BOX, Attack, Reconstruction, seeded
from attcem.attacks.decoder import Decoder, DecoderAttack
from attcem.attacks.errors import ErrorSpectrum
from attcem.attacks.inversion import Inversion
from attcem.attacks.match import Match
from attcem.attacks.pairs import hold_out
from attcem.attacks.pixel_search import SOLVERS, Problem
from attcem.naming import look_up
from attcem.progress import bar
from attcem.types import View

ANCHORS, ROUGH = (0.3, 1.0, 3.0), (0.3, 1.0, 3.0)
"""Weights to choose from: of the decoder's likely errors, and in units of 2 / the public images' mean difference."""
ERRORS = 8192  # public images that show how the decoder errs: those it was trained on, which are many


@dataclass(frozen=True)
class Optimise(Attack):
    """Optimises pixels through the device until they encode to what was sent, starting from a decoder's guess.

    Along which directions the decoder errs is learnt from the public images it was trained on, how much from others. On
    these it is tuned how far to trust the observation against that and against smoothness. If nothing gains, the guess
    stands.
    """

    needs = WHITE_BOX

    images: int = 64  # the first targets, which it attacks from every start
    worthwhile: float = 1.0
    """Where at least this share of the error goes on public images, all other targets are attacked from the guess."""
    solver: str = "lbfgs"
    steps: int = 200
    restarts: int = 1  # further starts, from the mean image and noise; the lowest objective is kept for each target
    draws: int = 8
    tuning: int = 32  # public images to tune on
    start: DecoderAttack = field(default_factory=lambda: Decoder(64, 4))

    @property
    def effort(self) -> float:
        grid = len(ANCHORS) * len(ROUGH) * self.tuning / 2  # of weights, each tried for half the steps
        return self.steps * (self.images * (1 + self.restarts) + grid)

    def brief(self) -> Optimise:
        start = replace(self.start.first, channels=16, blocks=1).brief()
        return replace(self, images=min(8, self.images), steps=60, tuning=8, start=start)

    def __call__(self, view: View, *, seed: int = 0, progress: bool = False) -> Reconstruction:
        with seeded(seed):
            decoder, match = self.start.trained(view, seed, progress), Match(view, seed, self.draws, straight=True)
            unlikely, anchor, tv, curve = self.tuned(view, match, decoder, seed)
            pays = curve[-1] <= (1 - self.worthwhile) * curve[0]
            z = view.targets if pays else view.targets[: self.images]
            guess = decoder.invert(z)
            if math.isinf(anchor):
                return Reconstruction(guess, curve, decoder.flags, decoder.gain)
            weights = (torch.full((len(z),), weight).to(z) for weight in (anchor, tv))
            problem = Problem(match, unlikely, z, guess, *weights)
            found, fell = self.solve(problem, guess, self.steps, progress)
            first, mean = next(problem.split(self.images)), view.public.mean().to(z.device)
            ends = [found[: self.images]]
            for _ in range(self.restarts):
                other = (mean + 0.1 * torch.randn_like(mean)).clamp(0, 1).expand_as(first.start)
                ends.append(self.solve(first, other, self.steps, progress)[0])
            images = torch.cat([first.lowest(ends), found[self.images :]])
        gain = None if decoder.gain is None else max(decoder.gain, fell)
        flags = ["the objective was still falling at the last step; more steps may find more"] * (fell > 0.02)
        return Reconstruction(images, curve, decoder.flags + flags, gain)

    def solve(self, problem: Problem, x: Tensor, steps: int, progress: bool = False) -> tuple[Tensor, float]:
        """Where the solver ends, and the share of the objective by which the last quarter of the steps lowered it."""
        minimise, together = look_up("solver", self.solver, SOLVERS)
        ends, fell, left = [], 0.0, 0.0
        with bar(f"optimise {self.solver}", len(x), shown=progress) as show:
            for some, start in zip(problem.split(together), x.split(together), strict=True):
                end, values = minimise(some, start, steps)
                ends.append(end)
                fell += min(values[: max(1, 3 * len(values) // 4)]) - min(values)
                left += min(values)
                show(sum(map(len, ends)), objective=values[-1] / len(start))
        return torch.cat(ends), fell / max(left, 1e-8)

    def tuned(
        self, view: View, match: Match, decoder: Inversion, seed: int
    ) -> tuple[ErrorSpectrum, float, float, list[float]]:
        """How the decoder errs, the weights of that and of TV that serve best, and the errors before and after.

        The anchor is infinite, which is the decoder's guess itself, unless the best gains more than two standard
        errors: the best of nine gains one by luck.
        """
        assert view.oracle is not None, "whoever has the weights may query"
        own, held_out = hold_out(view.public, seed)
        known, x = (part.pixels().to(view.targets.device) for part in (own[:ERRORS], held_out[: self.tuning]))
        errors = torch.cat([part - decoder.invert(view.oracle(part)) for part in known.split(256)])
        z = view.oracle(x)
        guess = decoder.invert(z)
        before = (guess - x).square().mean((1, 2, 3))
        unlikely = ErrorSpectrum.of(errors * (before.mean() / errors.square().mean().clamp_min(1e-12)).sqrt())
        steps = torch.cat([x.diff(dim=2).flatten(), x.diff(dim=3).flatten()])
        grid = torch.cartesian_prod(torch.tensor(ANCHORS), 2 / steps.abs().mean().item() * torch.tensor(ROUGH)).to(x)
        anchor, tv = grid.repeat_interleave(len(x), 0).T
        each = (len(grid), *[1] * (x.ndim - 1))
        problem = Problem(match, unlikely, z.repeat(len(grid), *[1] * (z.ndim - 1)), guess.repeat(each), anchor, tv)
        found, _ = self.solve(problem, problem.start, max(1, self.steps // 2))
        after = (found - x.repeat(each)).square().mean((1, 2, 3)).reshape(len(grid), len(x))
        best = int(after.mean(1).argmin())
        gain = before - after[best]
        if gain.mean() <= 2 * gain.std(correction=0) / len(x) ** 0.5:
            return unlikely, math.inf, 0.0, [before.mean().item()]
        return unlikely, *grid[best].tolist(), [before.mean().item(), after[best].mean().item()]
