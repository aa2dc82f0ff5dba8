"""How well an image explains an observation, to whoever has the weights."""

import torch

from attcem.attacks.base import PerImage, Pictures, noise_variance, seeded
from attcem.attacks.grid import identity, straighten
from attcem.maths import gaussian_like
from attcem.types import Latent, Released, View

MEASURED, REPEATS, LEAST_SHARE = 128, 4, 1e-3
"""Public images to measure a device with; pairs of releases of each; least share of a variance that counts as 1."""


class Match:
    """How far the released encoding of an image is from an observed one: Σ_d (E[release(encode(x))]_d − z_d)² / s_d.

    `straight`, both are compared before the squashing that the latents' range betrays, where nothing is random: a
    saturated value still tells its pre-activation. It has no gradient beyond the range, so it is for who starts near.

    s_d is the variance of the release noise of dimension d, plus a small share of the variance between images, both
    measured on public images: a mismatch of 1 per dimension is what the noise explains, whatever the victim.
    The expectation is exact where the release only adds noise, else the mean of `draws` fresh releases; through a
    release without a gradient, the gradient passes as if it were the identity.
    """

    def __init__(self, view: View, seed: int = 0, draws: int = 8, *, straight: bool = False) -> None:
        if view.device is None:
            raise ValueError("this attack needs the device's weights: choose the threat model white_box")
        self.device = view.device
        some = torch.randperm(len(view.public), generator=torch.Generator().manual_seed(seed))[:MEASURED]
        with seeded(seed):
            with torch.no_grad():
                parts = view.public[some].pixels().to(view.targets.device).split(32)
                z = torch.cat([self.device.encode(x).float() for x in parts])
                sent = [self.device.release(z) for _ in range(2 * REPEATS)]
            self.adds = self.only_adds(z[:16])
            self.differentiable = self.has_gradient(z[:16])
        self.offset = torch.stack([released - z for released in sent]).mean((0, 1))
        noise = noise_variance(torch.cat(sent[::2]), torch.cat(sent[1::2]))
        self.read = straighten(torch.cat(sent)) if straight and not noise.any() else identity
        spread = self.read(z + self.offset)
        spread = (spread - spread.mean(0)).square().mean(0)
        self.scale = noise + LEAST_SHARE * (spread + spread.mean()) / 2 + 1e-8
        self.draws = draws if noise.any() else 1

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
            (gradient,) = torch.autograd.grad((released * gaussian_like(released)).sum(), z)
        return bool(gradient.any())

    def expected(self, x: Pictures) -> Released:
        """E[release(encode(x))], differentiable."""
        z = self.device.encode(x).float()
        if self.adds:
            return z + self.offset
        mean = torch.stack([self.device.release(z) for _ in range(self.draws)]).mean(0)
        return mean if self.differentiable else z + (mean - z).detach()

    def __call__(self, x: Pictures, z: Released) -> PerImage:
        """The mismatch of each image with its own observation; its gradient is zero where the encoder ignores x."""
        mismatch = (self.read(self.expected(x)) - self.read(z)).square() / self.scale
        return mismatch.flatten(1).sum(1) + 0 * x.flatten(1).sum(1)
