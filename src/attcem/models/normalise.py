"""Normalisation as the first module of the encoder, so that images are in [0,1] everywhere else."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from attcem.types.mapped import blocks

SMALLEST_STD = 1 / 255
"""One grey level: a constant channel is centred, not blown up."""


class Normalise(nn.Module):
    """(x − mean) / std per channel; both are buffers, so they travel with the weights."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32).view(-1, 1, 1))

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        """Centre and scale a batch of images in [0,1]."""
        return (x - self.mean) / self.std

    def extra_repr(self) -> str:
        """The numbers, for `print(model)`."""
        return ", ".join(
            f"{name}={[round(v, 4) for v in getattr(self, name).flatten().tolist()]}" for name in ("mean", "std")
        )


def channel_statistics(x: UInt8[Tensor, "n h w c"]) -> tuple[list[float], list[float]]:
    """Mean and standard deviation per channel of [0,1] pixels, exact: a histogram never overflows or rounds."""
    if x.numel() == 0:
        raise ValueError("data.private holds no images: load some, or give shape= and classes= instead of data=")
    levels = torch.arange(256, dtype=torch.float64) / 255
    means, stds = [], []
    for channel in x.unbind(-1):
        counts = [torch.bincount(channel[rows].flatten(), minlength=256) for rows in blocks(x)]
        share = torch.stack(counts).sum(0).cpu().double() / channel.numel()
        mean = float(share @ levels)
        means.append(mean)
        stds.append(max(float(share @ (levels - mean) ** 2) ** 0.5, SMALLEST_STD))
    return means, stds
