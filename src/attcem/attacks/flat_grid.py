"""Vectors, tokens and maps of few cells on a finer grid: they have hardly any layout, so the inverter learns one."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attcem.attacks.grid import PATCH, Grid, MapGrid, Unfold, fold_onto, folded
from attcem.attacks.regression import principal_axes
from attcem.types import Released

MOST_WEIGHTS = 2**24
"""Weights from all values to all cells; beyond that through principal axes, onto a coarser grid that is enlarged."""
MOST_AXES, COARSEST = 1024, 8
"""Principal axes, as far as their weights are few enough as well; sides of the coarser grid."""
HEADS = 4  # ways in which a cell may attend to the tokens
HIDDEN = 512  # width of the dense layers that undo those of the device
FEW_CELLS = 4
"""A map of at most FEW_CELLS × FEW_CELLS cells is read like tokens in a raster: convolutions on it see too little."""


class FlatGrid(Grid):
    """Shows a vector, tokens or a small map in several ways at once, each in channels of its own."""

    located = False

    def __init__(self, latents: Released, height: int, width: int, channels: int, *, squashed: bool = True) -> None:
        super().__init__(latents, squashed)
        x = self.standardise(latents)
        self.size, self.covers = (math.ceil(height / PATCH), math.ceil(width / PATCH)), (height, width)
        side, fold = raster_side(x.shape[1]) if x.ndim == 3 else 0, 1
        if side > min(self.size) or (side and not few_weights(x, channels, self.size)):
            fold, self.size, self.covers = fold_onto(self.size, (side, side), (height, width))
        self.parts = nn.ModuleList([Spread(x, channels, self.size), Spread(x, channels, self.size, blocks=2)])
        if x.ndim == 3:
            self.parts.append(Attend(x, channels, self.size))
        if side:
            self.parts.append(Raster(side, fold, self.size))
        self.channels = sum(part(x[:1]).shape[1] for part in self.parts.to(x.device))

    def forward(self, released: Released) -> Float[Tensor, "b c h w"]:
        x = self.standardise(released)
        return torch.cat([part(x) for part in self.parts], 1)

    def standardise(self, released: Released) -> Float[Tensor, " b *flat"]:
        """Around 0, of variance 1; the cells of a map as tokens."""
        x = super().standardise(released)
        return x.flatten(2).transpose(1, 2) if x.ndim == 4 else x


class Spread(nn.Module):
    """All values to all cells by one matrix, behind dense residual `blocks` if there are any.

    A large matrix goes through principal axes to a coarse grid, which is then enlarged.
    """

    axes: Tensor | None

    def __init__(self, x: Float[Tensor, " n *flat"], channels: int, size: tuple[int, int], blocks: int = 0) -> None:
        super().__init__()
        values, few = x[0].numel(), few_weights(x, channels, size)
        most = min(MOST_AXES, MOST_WEIGHTS // values)
        self.register_buffer("axes", None if few else principal_axes(x.flatten(1), most))
        self.enlarge = Enlarge(channels, size, doublings=0 if few else None)
        self.shape = channels, *self.enlarge.coarse
        read = values if self.axes is None else self.axes.shape[1]
        self.digest = nn.Sequential()
        if blocks:
            self.digest.extend([nn.Linear(read, HIDDEN), *(DenseBlock(HIDDEN) for _ in range(blocks))])
        self.project = nn.Linear(HIDDEN if blocks else read, math.prod(self.shape))

    def forward(self, x: Float[Tensor, " b *flat"]) -> Float[Tensor, "b c h w"]:
        x = x.flatten(1) if self.axes is None else x.flatten(1) @ self.axes
        return self.enlarge(self.project(self.digest(x)).unflatten(1, self.shape))


class DenseBlock(nn.Module):
    """x + W₂ gelu(W₁ LN(x)), which starts as x."""

    def __init__(self, width: int) -> None:
        super().__init__()
        last = nn.Linear(2 * width, width)
        nn.init.zeros_(last.weight)
        self.layers = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), last)

    def forward(self, x: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
        return x + self.layers(x)


class Attend(nn.Module):
    """Every cell of a coarse grid asks all tokens by a query of its own; a constant set of tokens answers nothing."""

    def __init__(self, x: Float[Tensor, "n t d"], channels: int, size: tuple[int, int]) -> None:
        super().__init__()
        (_, tokens, width), wide = x.shape, HEADS * math.ceil(channels / HEADS)
        self.enlarge = Enlarge(wide, size)
        self.queries = nn.Parameter(torch.randn(math.prod(self.enlarge.coarse), wide))
        self.places = nn.Parameter(torch.randn(tokens, wide))
        self.keys, self.values = (nn.Linear(width, wide, bias=False) for _ in range(2))

    def forward(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b c h w"]:
        queries, keys, values = self.queries.expand(len(x), -1, -1), self.keys(x) + self.places, self.values(x)
        heads = (each.unflatten(2, (HEADS, -1)).transpose(1, 2) for each in (queries, keys, values))
        answers = F.scaled_dot_product_attention(*heads).transpose(2, 3).flatten(1, 2)
        return self.enlarge(answers.unflatten(2, self.enlarge.coarse))


class Raster(nn.Module):
    """Tokens that may be patches of the picture, row by row, at their places; a class token before them everywhere."""

    def __init__(self, side: int, fold: int, size: tuple[int, int]) -> None:
        super().__init__()
        self.side, self.fold, self.size = side, fold, size

    def forward(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b c h w"]:
        whole, patches = x.split([x.shape[1] - self.side**2, self.side**2], 1)
        laid_out = patches.transpose(1, 2).unflatten(2, (self.side, self.side))
        everywhere = whole.flatten(1)[..., None, None].expand(-1, -1, *self.size)
        return torch.cat([F.interpolate(folded(laid_out, self.fold), size=self.size), everywhere], 1)


class Enlarge(nn.Module):
    """A grid of at most COARSEST × COARSEST cells becomes one of this size, doubling by doubling."""

    def __init__(self, channels: int, size: tuple[int, int], doublings: int | None = None) -> None:
        super().__init__()
        if doublings is None:
            doublings = max(0, math.ceil(math.log2(max(size) / COARSEST)))
        self.size, self.coarse = size, tuple(math.ceil(side / 2**doublings) for side in size)
        self.steps = nn.Sequential(*(Unfold(channels, channels, 3, 2) for _ in range(doublings)))

    def forward(self, cells: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c H W"]:
        return self.steps(cells)[..., : self.size[0], : self.size[1]]


def few_weights(x: Released, channels: int, size: tuple[int, int]) -> bool:
    """Whether a matrix from all values to all cells is small enough to be learnt as it is."""
    return x[0].numel() * channels * math.prod(size) <= MOST_WEIGHTS


def raster_side(tokens: int) -> int:
    """The side of a square of so many tokens, or of one fewer; 0 if there is none."""
    side = math.isqrt(tokens)
    return side if side > 1 and tokens - side**2 in (0, 1) else 0


def has_places(latents: Released, height: int, width: int) -> bool:
    """Whether latents are maps of more than a few cells, each of which shows its own part of the picture."""
    return latents.ndim == 4 and max(latents.shape[2:]) > min(FEW_CELLS, height // (2 * PATCH), width // (2 * PATCH))


def grid_of(latents: Released, height: int, width: int, channels: int, *, squashed: bool = True) -> Grid:
    """The grid for latents of this shape; `channels` are those of each part where there is no layout."""
    kind = MapGrid if has_places(latents, height, width) else FlatGrid
    return kind(latents, height, width, channels, squashed=squashed)
