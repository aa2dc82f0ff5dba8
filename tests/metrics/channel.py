"""A linear Gaussian channel: everything an attacker could do with it is known."""

from __future__ import annotations

import math

import torch

from attcem.metrics.bounds import bounds

double = torch.double


class Channel:
    """x ~ N(½, Σ), z = A x + ε."""

    def __init__(self, seed, d=9, wide=6, sigma=0.05, spread=1.0, n=4000):
        generator = torch.Generator().manual_seed(seed)
        self.sigma, self.d, self.n = sigma, d, n
        axes = torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=double))[0]
        scales = 0.1 * torch.exp(spread * torch.randn(d, generator=generator, dtype=double))
        self.root = axes * scales
        self.cov = self.root @ self.root.T
        self.a = torch.randn(wide, d, generator=generator, dtype=double) / math.sqrt(d)
        self.generator = generator

    def images(self):
        x = 0.5 + torch.randn(self.n, self.d, generator=self.generator, dtype=double) @ self.root.T
        side = math.isqrt(self.d)
        return x.reshape(self.n, 1, side, self.d // side)

    def encode(self, x):
        return x.flatten(1) @ self.a.T

    @property
    def information(self):
        inner = torch.eye(len(self.a), dtype=double) + self.a @ self.cov @ self.a.T / self.sigma**2
        return 0.5 * torch.logdet(inner).item()

    @property
    def least_mse(self):
        posterior = torch.linalg.inv(torch.linalg.inv(self.cov) + self.a.T @ self.a / self.sigma**2)
        return posterior.trace().item() / self.d

    @property
    def entropy(self):
        return 0.5 * torch.logdet(2 * math.pi * math.e * self.cov).item()

    def bounds(self, **options):
        x = self.images()
        return bounds(self.encode(x), labels(len(x)), 3, self.sigma, x, encode=self.encode, **options)


def isotropic(seed=0, sigma=0.1, **options):
    channel = Channel(seed, d=16, wide=16, sigma=sigma, spread=0.0, **options)
    channel.a = torch.eye(16, dtype=double)
    return channel


def labels(n, classes=3):
    return torch.arange(n) % classes
