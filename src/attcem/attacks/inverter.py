"""A network that maps a released latent back to an image."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attcem.attacks.flat_grid import grid_of
from attcem.attacks.grid import Cells, Unfold
from attcem.types import Released

MOST_FEATURES = 3000  # inputs of the linear guess for one cell; beyond that fewer neighbours are looked at
ENOUGH = 50  # cells per unknown of the linear guess: more would not change it
MOST_CELLS = 1024  # cells that may look at each other: attention costs their square


class Residual(nn.Module):
    """x + conv(gelu(conv(x))): the last convolution starts at zero, so depth costs nothing at first."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = zeroed(nn.Conv2d(channels, channels, 3, padding=1))

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        return x + self.second(F.gelu(self.first(x)))


class CellAttention(nn.Module):
    """Every cell looks at every other, four heads; it starts as nothing, so depth costs nothing at first."""

    def __init__(self, channels: int, cells: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.place = nn.Parameter(0.02 * torch.randn(cells, channels))
        self.attend = nn.MultiheadAttention(channels, 4, batch_first=True)
        zeroed(self.attend.out_proj)

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        tokens = self.norm(x.flatten(2).transpose(1, 2)) + self.place
        seen, _ = self.attend(tokens, tokens, tokens, need_weights=False)
        return x + seen.transpose(1, 2).reshape(x.shape)


class Inverter(nn.Module):
    """Mean image + a linear guess from the neighbouring cells + what residual blocks add to it.

    It starts as the mean image; `solve_linear` moves it to the best linear guess, and training goes on from there.
    Where the linear guess hinders, it can be left out: `linear = None`.
    """

    image_mean: Tensor

    def __init__(
        self, latents: Released, mean: Float[Tensor, "c h w"], channels: int, blocks: int, *, attention: bool = False
    ) -> None:
        super().__init__()
        self.terms = nn.ModuleList()  # further guesses, which are added to this one
        self.register_buffer("image_mean", mean)
        colours, height, width = mean.shape
        self.grid: Cells = grid_of(latents, height, width, channels)
        factor = max(math.ceil(height / self.grid.size[0]), math.ceil(width / self.grid.size[1]))
        reach = next((k for k in (5, 3) if self.grid.channels * k**2 <= MOST_FEATURES), 1)
        self.linear: Unfold | None = Unfold(self.grid.channels, colours, reach, factor)
        zeroed(self.linear)
        self.stem = nn.Conv2d(self.grid.channels, channels, 3, padding=1)
        self.body = nn.Sequential()
        self.deepen(blocks // 2)
        self.deepen(blocks - blocks // 2, attention=attention)
        fine = max(8, channels // 8)
        self.unfold = Unfold(channels, fine, 3, factor)
        self.out = zeroed(nn.Conv2d(fine, colours, 3, padding=1))

    def deepen(self, blocks: int, *, attention: bool = False) -> None:
        """Add blocks, and before them a look of every cell at the others; all begin as nothing: the guess stays."""
        channels, cells = self.stem.out_channels, math.prod(self.grid.size)
        if attention and cells <= MOST_CELLS:
            self.body.append(CellAttention(channels, cells))
        self.body.extend(Residual(channels) for _ in range(blocks))

    def read(self, grid: Cells) -> None:
        """Look at a grid with more channels; they count nothing at first: the guess stays."""
        more = grid.channels - self.grid.channels
        self.grid, self.stem = grid, widened(self.stem, more)
        if self.linear is not None:
            self.linear.convolution = widened(self.linear.convolution, more)

    def forward(self, released: Released) -> Float[Tensor, "b c h w"]:
        """The guessed images, not clamped."""
        cells = self.grid(released)
        x = self.added(cells) if self.linear is None else self.linear(cells) + self.added(cells)
        if x.shape[-2:] != self.grid.covers:
            x = F.interpolate(x, size=self.grid.covers, mode="bilinear", antialias=True)
        height, width = self.image_mean.shape[-2:]
        guess = self.image_mean + x[..., :height, :width]
        for term in self.terms:
            guess = guess + term(released)
        return guess

    def added(self, cells: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d H W"]:
        return self.out(F.gelu(self.unfold(self.body(self.stem(cells)))))

    def solved(self) -> list[nn.Parameter]:
        return [p for part in (self.linear, self.terms) if part is not None for p in part.parameters()]

    @torch.no_grad()
    def solve_linear(self, pairs: Iterable[tuple[Tensor, Tensor]]) -> None:
        """Make the linear guess the ridge regression of patches, less what the blocks add, on neighbouring cells.

        Pairs of (released, image) batches are taken until there are ENOUGH cells for every unknown of a patch.
        """
        if self.linear is None:
            return
        reach, factor, convolution = self.linear.reach, self.linear.factor, self.linear.convolution
        size = tuple(cells * factor for cells in self.grid.size)
        gram, cross, seen = torch.zeros(()), torch.zeros(()), 0
        for released, x in pairs:
            for term in self.terms:
                x = x - term(released)
            cells = self.grid(released)
            near = F.pad(F.unfold(cells, reach, padding=reach // 2).transpose(1, 2).flatten(0, 1), (0, 1), value=1.0)
            covered = self.grid.covers[1] - x.shape[3], self.grid.covers[0] - x.shape[2]
            wanted = F.pad(x - self.image_mean, (0, covered[0], 0, covered[1]))
            if size != self.grid.covers:
                wanted = F.interpolate(wanted, size=size, mode="bilinear", antialias=True)
            patches = F.unfold(wanted - self.added(cells), factor, stride=factor).transpose(1, 2).flatten(0, 1)
            # a batch in single precision, whose rounding is far below the ridge; their sum in double.
            gram, cross = gram + (near.T @ near).double(), cross + (near.T @ patches).double()
            seen += len(near)
            if seen >= ENOUGH * near.shape[1]:
                break
        ridge = 1e-5 * gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
        solution = torch.linalg.solve(gram + ridge, cross).T.to(convolution.weight.dtype)
        convolution.weight.copy_(solution[:, :-1].reshape(convolution.weight.shape))
        convolution.bias.copy_(solution[:, -1])  # type: ignore[union-attr]


def zeroed(layer: nn.Module) -> nn.Module:
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)
    return layer


@torch.no_grad()
def widened(layer: nn.Conv2d, more: int) -> nn.Conv2d:
    """The same layer with so many further inputs, which it ignores at first."""
    wide = nn.Conv2d(layer.in_channels + more, layer.out_channels, layer.kernel_size, padding=layer.padding)  # type: ignore[arg-type]
    wide.weight.copy_(F.pad(layer.weight, (0, 0, 0, 0, 0, more)))
    wide.bias.copy_(layer.bias)  # type: ignore[union-attr, arg-type]
    return wide.to(layer.weight)
