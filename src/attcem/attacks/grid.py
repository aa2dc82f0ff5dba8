"""A latent as a grid of cells, straightened and standardised: the form in which every inverter reads it."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attcem.types import Released

PATCH = 4
"""The inverter thinks on a grid of at most one cell per PATCH × PATCH pixels: wide and cheap, whatever the latent."""


class Cells(nn.Module):
    """What an inverter reads: a latent as a grid of cells, the same for every latent of a victim."""

    channels: int
    size: tuple[int, int]
    covers: tuple[int, ...]  # the size in pixels of what the grid stands for
    located: bool = True
    """Whether a cell shows its own place of the picture from the first; otherwise what it shows is learnt."""


class Grid(Cells):
    """Lays a latent out on the inverter's grid, straightened and standardised as the attacker measured it."""

    mean: Tensor
    std: Tensor

    def __init__(self, latents: Released, squashed: bool) -> None:
        super().__init__()
        self.straighten = straighten(latents) if squashed else identity
        self.features = 2 if latents.ndim == 3 else 1  # the axis along which each value has a scale of its own
        both = self.both(latents)
        # The mean is taken position by position: a deviation from the mean image is then linear in it.
        self.register_buffer("mean", both.mean(0))
        alike = [axis for axis in range(both.ndim) if axis != self.features]
        self.register_buffer("std", (both - self.mean).square().mean(alike, keepdim=True)[0].sqrt().clamp_min(1e-6))

    def both(self, released: Released) -> Float[Tensor, " b *wider"]:
        """The latent as it came, and straightened where that changes it."""
        if self.straighten is identity:
            return released
        return torch.cat([released, self.straighten(released)], self.features)

    def standardise(self, released: Released) -> Float[Tensor, " b *wider"]:
        return (self.both(released) - self.mean) / self.std


class MapGrid(Grid):
    """A map [c h w] is its own grid; one finer than the inverter's is folded, space to depth, so nothing is lost.

    Folding may pad the far edges, so that the grid covers more than the image.
    """

    def __init__(self, latents: Released, height: int, width: int, channels: int, *, squashed: bool = True) -> None:
        super().__init__(latents, squashed)
        finest = math.ceil(height / PATCH), math.ceil(width / PATCH)
        self.fold, self.size, self.covers = fold_onto(finest, tuple(self.mean.shape[1:]), (height, width))
        self.channels = len(self.mean) * self.fold**2

    def forward(self, released: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d H W"]:
        return folded(self.standardise(released), self.fold)


def fold_onto(
    finest: tuple[int, ...], sides: tuple[int, ...], pixels: tuple[int, int]
) -> tuple[int, tuple[int, int], tuple[int, ...]]:
    """How many values a side to fold into one cell, how many cells that makes, and how many pixels they cover."""
    fold = max(1, *(math.ceil(side / most) for side, most in zip(sides, finest, strict=True)))
    size = math.ceil(sides[0] / fold), math.ceil(sides[1] / fold)
    covers = (round(p * cells * fold / side) for p, cells, side in zip(pixels, size, sides, strict=True))
    return fold, size, tuple(covers)


def folded(x: Float[Tensor, "b c h w"], fold: int) -> Float[Tensor, "b d H W"]:
    """Space to depth, with zeros beyond the far edges."""
    return x if fold == 1 else F.pixel_unshuffle(F.pad(x, (0, -x.shape[3] % fold, 0, -x.shape[2] % fold)), fold)


class Unfold(nn.Module):
    """Convolution and depth to space: every cell becomes a patch of the image."""

    def __init__(self, channels_in: int, channels_out: int, reach: int, factor: int) -> None:
        super().__init__()
        self.reach, self.factor = reach, factor
        self.convolution = nn.Conv2d(channels_in, channels_out * factor**2, reach, padding=reach // 2)

    def forward(self, cells: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d H W"]:
        return F.pixel_shuffle(self.convolution(cells), self.factor)


def identity(z: Tensor) -> Tensor:
    return z


def undo_sigmoid(z: Tensor) -> Tensor:
    """Logits, as far as single precision tells them apart."""
    return torch.logit(z, eps=1e-7)


def straighten(latents: Released) -> Callable[[Tensor], Tensor]:
    """What undoes the squashing that the observed range betrays: a saturated value still tells its pre-activation."""
    low, high = latents.min(), latents.max()
    if low >= -1 and 0.5 < high <= 1:
        return undo_sigmoid if low >= 0 else lambda z: undo_sigmoid((z + 1) / 2)
    return identity
