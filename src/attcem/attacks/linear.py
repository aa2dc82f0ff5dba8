"""Linear attack: no training at all, the least-squares guess of a picture from its latent."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from attcem.attacks.base import Attack, Reconstruction
from attcem.attacks.decoder import Decoder
from attcem.attacks.inversion import Inversion
from attcem.types import View


@dataclass(frozen=True)
class Linear(Attack):
    """Guesses every patch by ridge regression on the cells of the latent around it.

    Where every decoder begins, in closed form: it cannot fail to learn, so that one that did is found out beside it.
    """

    @property
    def effort(self) -> float:
        """A regression on a few thousand pictures."""
        return 5_000

    def __call__(self, view: View, *, seed: int = 0, progress: bool = False) -> Reconstruction:
        """Solve on public images, invert the targets."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            solved = Inversion(Decoder(8, 0), view, seed)
        return Reconstruction(solved.invert(view.targets), solved.curve)
