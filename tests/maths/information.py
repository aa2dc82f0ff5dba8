"""I(x;z) of equally likely points and Gaussian noise: on a grid, or as a mean over noise."""

from __future__ import annotations

import math

import torch


def integrated_information(x, sigma):
    """In one or two dimensions: h(z) − h(ε) on a grid."""
    step = sigma / 4
    axes = [torch.arange(own.min() - 8 * sigma, own.max() + 8 * sigma, step, dtype=torch.double) for own in x.T]
    grid = torch.cartesian_prod(*axes).reshape(-1, x.shape[1])
    log_density = torch.logsumexp(-torch.cdist(grid, x).square() / (2 * sigma**2), 1)
    log_density = log_density - math.log(len(x)) - x.shape[1] * math.log(sigma * math.sqrt(2 * math.pi))
    h_z = -(log_density.exp() * log_density).sum().item() * step ** x.shape[1]
    return h_z - x.shape[1] * 0.5 * math.log(2 * math.pi * math.e * sigma**2)


def sampled_information(z, sigma, draws):
    """In any number of dimensions, as a mean over noise."""
    z, total = z.flatten(1), 0.0
    for seed in range(draws):
        noise = sigma * torch.randn(z.shape, generator=torch.Generator().manual_seed(1000 + seed), dtype=z.dtype)
        log_density = torch.logsumexp(-torch.cdist(z + noise, z).square() / (2 * sigma**2), 1) - math.log(len(z))
        total += (-noise.square().sum(1) / (2 * sigma**2) - log_density).mean().item()
    return total / draws
