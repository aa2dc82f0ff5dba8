"""Defences and encoders whose effect is known in advance: they prove what is wired to what."""

import torch
from torch import nn

from attcem.defences import Defence
from attcem.models import Split


def weighted_penalty(guard, batch):
    """Σ λ_i · penalty_i over the links of a guard."""
    return sum((link.lam * link.penalty(batch) for link in guard.links if link.penalises), batch.z.new_zeros(()))


class Blank(Defence):
    """Releases nothing but zeros: accuracy must fall to chance wherever release is applied."""

    def release(self, z):
        return torch.zeros_like(z)


class Shrink(Defence):
    """Its penalty is the latent's mean square: training must make the latent small."""

    def __init__(self, lam=1.0, warmup=0):
        super().__init__()
        self.lam, self.warmup = lam, warmup

    def penalty(self, batch):
        return batch.z.square().mean()


class Scaled(Defence):
    """A penalty with a parameter of its own."""

    def __init__(self, lam=3.0, warmup=0):
        super().__init__()
        self.lam, self.warmup = lam, warmup

    def setup(self, *, latent, classes, sigma):
        self.gain = nn.Parameter(torch.rand(latent, generator=torch.Generator().manual_seed(1)) + 0.5)

    def penalty(self, batch):
        return (self.gain * batch.z).square().mean() + 0.1 * self.gain.square().sum()


class Poison(Defence):
    """Makes chosen batches NaN, in what is released or in the penalty."""

    def __init__(self, release_at=(), penalty_at=(), lam=1.0):
        super().__init__()
        self.release_at, self.penalty_at, self.lam = set(release_at), set(penalty_at), lam
        self.released = self.penalised = self.observed = 0

    def release(self, z):
        if not self.training:
            return z
        self.released += 1
        return z * float("nan") if self.released in self.release_at else z

    def penalty(self, batch):
        self.penalised += 1
        return batch.z.mean() * (float("nan") if self.penalised in self.penalty_at else 0.0)

    def observe(self, batch):
        assert not batch.z.requires_grad
        self.observed += 1


class Pixels(nn.Module):
    """The identity encoder: the latent is the image."""

    def forward(self, x):
        return x


class Patches(nn.Module):
    """The identity encoder, as tokens: one for every 2×2 pixels."""

    def forward(self, x):
        return nn.functional.pixel_unshuffle(x, 2).flatten(2).transpose(1, 2)


class Nothing(nn.Module):
    """A constant encoder: the latent says nothing about the image."""

    def __init__(self, *shape):
        super().__init__()
        self.shape = shape or (4, 7, 7)

    def forward(self, x):
        return torch.full((len(x), *self.shape), 0.3, dtype=x.dtype)


class Coarse(nn.Module):
    """Means of 4×4 pixels."""

    def forward(self, x):
        return nn.functional.avg_pool2d(x, 4)


def split_with(encoder: nn.Module, shape=(1, 28, 28), classes=10) -> Split:
    latent = tuple(encoder(torch.zeros(2, *shape)).shape[1:])
    size = torch.Size(latent).numel()
    decoder = nn.Sequential(nn.Flatten(), nn.Linear(size, classes))
    return Split(encoder, decoder, latent_shape=latent, classes=classes)
