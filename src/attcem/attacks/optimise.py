"""Optimisation attack: search the pixels whose released encoding is the one observed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Float
from torch import Tensor

from attcem.attacks.base import Attack, Reconstruction
from attcem.attacks.decoder import Decoder, Inversion, owned
from attcem.attacks.pairs import hold_out
from attcem.naming import look_up
from attcem.progress import bar
from attcem.types import Latent, Released, View

MEASURED, REPEATS, TOLD_APART = 128, 4, 1e-3
"""Public images to measure a device with; pairs of releases of each; least share of a variance that counts as 1."""

SMOOTH = 0.01
"""Differences of pixels below this count by their squares."""

ANCHORS, ROUGH = (0.1, 1.0, 10.0), (0.3, 3.0)
"""Weights to choose from, in units of 1 / the decoder's squared error and 2 / the public images' mean difference."""


class Match:
    """How far the released encoding of an image is from an observed one: Σ_d (E[release(encode(x))]_d − z_d)² / s_d.

    s_d is the variance of the release noise of dimension d, plus a small share of the variance between images, both
    measured on public images: a mismatch of 1 per dimension is what the noise explains, whatever the victim.
    The expectation is exact where the release only adds noise, else the mean of `draws` fresh releases; through a
    release without a gradient, the gradient passes as if it were the identity.
    """

    def __init__(self, view: View, seed: int = 0, draws: int = 8) -> None:
        if view.device is None:
            raise ValueError("this attack needs the device's weights: choose the threat model white_box")
        self.device = view.device
        some = torch.randperm(len(view.public), generator=torch.Generator().manual_seed(seed))[:MEASURED]
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            with torch.no_grad():
                parts = view.public[some].pixels().to(view.targets.device).split(32)
                z = torch.cat([self.device.encode(x).float() for x in parts])
                noise, self.offset = torch.stack([self.measure(z) for _ in range(REPEATS)]).mean(0)
            self.adds = self.only_adds(z[:16])
            self.differentiable = self.has_gradient(z[:16])
        spread = (z - z.mean(0)).square().mean(0)
        self.scale = noise + TOLD_APART * (spread + spread.mean()) / 2 + 1e-8
        self.draws = draws if noise.any() else 1

    def measure(self, z: Latent) -> Float[Tensor, "2 *latent"]:
        """Variance of the noise, and what it adds on average, from two releases of the same latents."""
        first, second = self.device.release(z), self.device.release(z)
        return torch.stack([(first - second).square().mean(0) / 2, ((first + second) / 2 - z).mean(0)])

    @torch.no_grad()
    def only_adds(self, z: Latent) -> bool:
        """Whether the release adds the same to any latent, given the same random numbers."""
        torch.manual_seed(0)
        once = self.device.release(z) - z
        torch.manual_seed(0)
        again = self.device.release(2 * z) - 2 * z
        return bool((once - again).abs().max() <= 1e-5 * (once.abs().max() + z.abs().max()))

    def has_gradient(self, z: Latent) -> bool:
        """Whether what is released can be differentiated, and does not look constant."""
        with torch.enable_grad():
            z = z.detach().requires_grad_()
            released = self.device.release(z)
            if not released.requires_grad:
                return False
            (gradient,) = torch.autograd.grad((released * torch.randn_like(released)).sum(), z)
        return bool(gradient.any())

    def expected(self, x: Float[Tensor, "b c h w"]) -> Released:
        """E[release(encode(x))], differentiable."""
        z = self.device.encode(x).float()
        if self.adds:
            return z + self.offset
        mean = torch.stack([self.device.release(z) for _ in range(self.draws)]).mean(0)
        return mean if self.differentiable else z + (mean - z).detach()

    def __call__(self, x: Float[Tensor, "b c h w"], z: Released) -> Float[Tensor, " b"]:
        """The mismatch of each image with its own observation; its gradient is zero where the encoder ignores x."""
        mismatch = (self.expected(x) - z).square() / self.scale
        return mismatch.flatten(1).sum(1) + 0 * x.flatten(1).sum(1)


def roughness(x: Float[Tensor, "b c h w"]) -> Float[Tensor, " b"]:
    """Total variation Σ |x_i − x_j| over neighbouring pixels, smooth where a difference is below SMOOTH."""
    steps = x.diff(dim=2), x.diff(dim=3)
    return sum((torch.hypot(d, d.new_tensor(SMOOTH)) - SMOOTH).sum((1, 2, 3)) for d in steps)  # type: ignore[return-value]


@dataclass(frozen=True)
class Problem:
    """What is minimised for each image by itself: match(x, z) + anchor·‖x − start‖² + tv·TV(x)."""

    match: Match
    z: Released
    start: Float[Tensor, "b c h w"]
    anchor: Float[Tensor, " b"]
    tv: Float[Tensor, " b"]

    def __call__(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, " b"]:
        """One objective per image."""
        away = (x - self.start).square().sum((1, 2, 3))
        return self.match(x, self.z) + self.anchor * away + self.tv * roughness(x)

    def split(self, size: int) -> Iterator[Problem]:
        """The same for a few images at a time."""
        fields = (part.split(size) for part in (self.z, self.start, self.anchor, self.tv))
        return (Problem(self.match, *few) for few in zip(*fields, strict=True))


def adam(problem: Problem, x: Tensor, steps: int) -> tuple[Tensor, list[float]]:
    """Adam on the pixels, put back into [0,1] after every step, while the learning rate falls to zero."""
    x = x.clone().requires_grad_()
    optimiser, values = torch.optim.Adam([x]), []
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = 0.02 * min(1.0, 2 * (1 - step / steps))
        value = problem(x).sum()
        value.backward(inputs=[x])
        optimiser.step()
        optimiser.zero_grad()
        with torch.no_grad():
            x.clamp_(0, 1)
        values.append(value.item())
    return x.detach(), values


def lbfgs(problem: Problem, x: Tensor, steps: int) -> tuple[Tensor, list[float]]:
    """L-BFGS with strong Wolfe steps on u, x = sin²(u), which cannot leave [0,1].

    The images of one call share the length of their steps, so they are nearly, not quite, independent: a few at a
    time. Every evaluation sees the same release noise, without which no line search ends.
    """
    u = x.clamp(0.002, 0.998).sqrt().asin().requires_grad_()
    optimiser = torch.optim.LBFGS([u], max_iter=steps, history_size=20, line_search_fn="strong_wolfe")
    noise, values = int(torch.randint(2**31, ())), []

    def evaluate() -> Tensor:
        torch.manual_seed(noise)
        value = problem(u.sin().square()).sum()
        optimiser.zero_grad()
        value.backward(inputs=[u])
        values.append(value.item())
        return value

    optimiser.step(evaluate)
    return u.detach().sin().square(), values


SOLVERS: dict[str, tuple[Callable[[Problem, Tensor, int], tuple[Tensor, list[float]]], int]] = {
    "adam": (adam, 32),
    "lbfgs": (lbfgs, 8),
}
"""Solver → what returns the images and the objective as it went, and how many images to give it at a time."""


@dataclass(frozen=True)
class Optimise(Attack):
    """Optimises pixels through the device until they encode to what was sent, starting from a decoder's guess.

    How far to trust the observation against the decoder and against smoothness is tuned for each victim on held-out
    public images, released once as the targets were. Where nothing gains there, the decoder's guess stands.
    """

    images: int = 64
    solver: str = "lbfgs"
    steps: int = 200
    restarts: int = 1
    """Further starts, from the mean image and noise; the lowest objective is kept for each target."""
    draws: int = 8
    tuning: int = 32
    """Public images to tune on."""
    start: Decoder = field(default_factory=lambda: Decoder(64, 4))

    @property
    def needs(self) -> frozenset[str]:
        """The device's weights and gradients."""
        return frozenset({"public", "queries", "weights", "gradients"})

    def brief(self) -> Optimise:
        """A few images, a few steps, a decoder of seconds."""
        start = replace(self.start, channels=16, blocks=1).brief()
        return replace(self, images=min(8, self.images), steps=60, tuning=8, start=start)

    def __call__(self, view: View, *, seed: int = 0, progress: bool = False) -> Reconstruction:
        """Tune the weights, search from every start, keep the best for each target."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            decoder, match = self.start.trained(view, seed, progress), Match(view, seed, self.draws)
            anchor, tv, curve = self.tuned(view, match, decoder, seed)
            z = view.targets[: self.images]
            guess = decoder.invert(z)
            if math.isinf(anchor):
                return Reconstruction(guess, curve)
            problem = Problem(match, z, guess, anchor * torch.ones(len(z)).to(z), tv * torch.ones(len(z)).to(z))
            mean = view.public.pixels().mean(0).to(z.device)
            found, fell = self.solve(problem, guess, self.steps, progress)
            ends = [found]
            for _ in range(self.restarts):
                other = (mean + 0.1 * torch.randn_like(mean)).clamp(0, 1).expand_as(guess)
                ends.append(self.solve(problem, other, self.steps, progress)[0])
            with torch.no_grad():
                best = torch.stack([problem(x) for x in ends]).argmin(0)
        doubt = "the objective was still falling at the last step; more steps may find more"
        images = torch.stack(ends)[best, torch.arange(len(z), device=z.device)]
        return Reconstruction(images, curve, [doubt] if fell > 0.02 else [])

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

    def tuned(self, view: View, match: Match, decoder: Inversion, seed: int) -> tuple[float, float, list[float]]:
        """Weights of anchor and TV that serve best on held-out public images, and the errors before and after.

        The anchor is infinite, which is the decoder's guess itself, unless the best gains more than two standard
        errors: the best of six gains one by luck.
        """
        assert view.oracle is not None, "whoever has the weights may query"
        _, held_out = hold_out(owned(self.start, view.public), seed)
        x = held_out[: self.tuning].pixels().to(view.targets.device)
        z = view.oracle(x)
        guess = decoder.invert(z)
        before = (guess - x).square().mean((1, 2, 3))
        steps = torch.cat([x.diff(dim=2).flatten(), x.diff(dim=3).flatten()])
        units = 1 / before.mean().clamp_min(1e-6), 2 / steps.abs().mean().clamp_min(1e-3)
        grid = torch.cartesian_prod(torch.tensor(ANCHORS), torch.tensor(ROUGH)).to(x) * torch.stack(units)
        anchor, tv = grid.repeat_interleave(len(x), 0).T
        many = (len(grid), *[1] * (x.ndim - 1))
        problem = Problem(match, z.repeat(len(grid), *[1] * (z.ndim - 1)), guess.repeat(many), anchor, tv)
        found, _ = self.solve(problem, problem.start, max(1, self.steps // 2))
        after = (found - x.repeat(many)).square().mean((1, 2, 3)).reshape(len(grid), len(x))
        best = int(after.mean(1).argmin())
        gain = before - after[best]
        if gain.mean() <= 2 * gain.std(correction=0) / len(x) ** 0.5:
            return math.inf, 0.0, [before.mean().item()]
        return *grid[best].tolist(), [before.mean().item(), after[best].mean().item()]
