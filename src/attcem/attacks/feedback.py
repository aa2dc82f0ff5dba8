"""A decoder that sends its first guess to the device, and reads by how much the answer differs from what was sent."""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attcem.attacks.base import Pictures
from attcem.attacks.decoder import Grown
from attcem.attacks.flat_grid import grid_of
from attcem.attacks.grid import Cells, Grid
from attcem.attacks.inversion import Inversion
from attcem.attacks.inverter import Inverter
from attcem.attacks.pairs import unchanging
from attcem.types import Released

ANSWERS = 4  # queries with the same guess, averaged, where the device does not always send the same


@dataclass(frozen=True)
class Feedback(Grown):
    """Sends the guess of its start to the device, and reads what the answer differs by."""

    @property
    def words(self) -> list[str]:
        return [*self.start.words, "the device's answer to its first guess"]

    @property
    def effort(self) -> float:
        return 1.6 * super().effort  # every guess goes to the device as well

    def network(self, training: Inversion, before: Inverter | None) -> Inverter:
        """Let the start's network also read the answers to its own guesses, unless it does already."""
        assert before is not None, "it grows from its start"
        if isinstance(before.grid, Grid):
            oracle, answers = training.pairs.oracle, 1 if unchanging(training.view) else ANSWERS
            latents, images = training.first_pairs()
            ask, guess, shape = lambda x: oracle(x, answers), copy.deepcopy(before), images.shape[-2:]
            before.read(AnsweredGrid(before.grid, guess, ask, latents, *shape, before.stem.out_channels))
        return before


class AnsweredGrid(Cells):
    """A grid that also shows what the device sent less what it would send for a trained inverter's guess.

    An inverter has to know what the encoder makes of every picture. Here it is told for one that is close to the
    wanted one, and has only to learn which small change accounts for the small difference that is left.
    """

    def __init__(self, grid: Grid, guess: nn.Module, ask: Callable[..., Released], latents: Released, *shape: int):
        """`shape` is the height and width of pictures and the channels of a grid, as `grid_of` takes them."""
        super().__init__()
        self.grid, self.guess, self.ask = grid, guess.requires_grad_(False), ask
        left = torch.cat([self.difference(part) for part in latents.split(256)])
        self.differences = grid_of(left, *shape, squashed=False)
        self.channels = grid.channels + self.differences.channels
        self.size, self.covers, self.located = grid.size, grid.covers, grid.located

    @torch.no_grad()
    def difference(self, released: Released) -> Float[Tensor, " b *wider"]:
        return self.grid.both(released) - self.grid.both(self.ask(self.guess(released).clamp(0, 1)))

    def forward(self, released: Released) -> Pictures:
        return torch.cat([self.grid(released), self.differences(self.difference(released))], 1)
