"""What the device answers to a guess: by how much it would have sent something else."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attcem.attacks.inverter import Cells, Grid
from attcem.types import Released


class Feedback(Cells):
    """A grid that also shows what the device sends less what it would send for a trained inverter's guess.

    An inverter has to know what the encoder makes of every picture. Here it is told for one that is close to the
    wanted one, and has only to learn which small change accounts for the small difference that is left.
    """

    def __init__(
        self,
        grid: Grid,
        guess: nn.Module,
        ask: Callable[[Float[Tensor, "b c h w"]], Released],
        latents: Float[Tensor, " n *latent"],
        height: int,
        width: int,
    ) -> None:
        super().__init__()
        self.grid, self.guess, self.ask = grid, guess.requires_grad_(False), ask
        left = torch.cat([self.difference(part) for part in latents.split(256)])
        self.differences = Grid(left, height, width, grid.channels, squashed=False)
        self.channels = grid.channels + self.differences.channels
        self.size, self.covers = grid.size, grid.covers

    @torch.no_grad()
    def difference(self, released: Float[Tensor, " b *latent"]) -> Float[Tensor, " b *wider"]:
        """What was sent, less the device's answer to the guess."""
        answer = self.ask(self.guess(released).clamp(0, 1))
        return self.grid.both(released) - self.grid.both(answer)

    def forward(self, released: Float[Tensor, " b *latent"]) -> Float[Tensor, "b c h w"]:
        """The latent as a grid of cells, and the difference in further channels."""
        return torch.cat([self.grid(released), self.differences(self.difference(released))], 1)
