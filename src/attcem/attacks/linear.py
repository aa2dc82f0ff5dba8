"""Linear attack: no training at all, the least-squares guess of a picture from its latent."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attcem.attacks.base import Attack, Reconstruction, seeded
from attcem.attacks.decoder import Decoder
from attcem.attacks.flat_grid import has_places
from attcem.attacks.grid import identity, straighten
from attcem.attacks.inversion import Inversion
from attcem.attacks.regression import BUDGET, STRENGTHS, TrainingSet, principal_axes, ridge
from attcem.types import Released, View

MOST = 8192  # releases to solve on
SHARES = (0.1, 0.5)
"""Principal axes to solve on, as shares of the images: more of them know the pictures that they were solved on."""


@dataclass(frozen=True)
class Linear(Attack):
    """Guesses every patch by ridge regression on the cells of the latent around it.

    A map is solved as every decoder begins; a vector, tokens or a map of few cells on the principal axes of all
    values. In closed form it cannot fail to learn, so that a decoder that did is found out beside it.
    """

    effort = 5_000

    def __call__(self, view: View, *, seed: int = 0, progress: bool = False) -> Reconstruction:
        with seeded(seed):
            if not has_places(view.targets, *view.public.shape[1:]):
                return solve_on_axes(view, seed)
            solved = Inversion(Decoder(8, 0), view, seed)
        return Reconstruction(solved.invert(view.targets), solved.curve)


def solve_on_axes(view: View, seed: int) -> Reconstruction:
    """Ridge regression of pixels on principal axes; a quarter of the images chooses how many, and the strength."""
    undo, pixels = straighten(view.targets), view.public.pixels().flatten(1)

    def features(released: Released) -> Float[Tensor, "b d"]:
        flat = released.flatten(1)
        return flat if undo is identity else torch.cat([flat, undo(flat)], 1)

    data = TrainingSet.of(view, seed, features, share=0.25, most=min(MOST, max(64, BUDGET // pixels.shape[1])))
    own, unseen = (pixels[part.of.cpu()].to(view.targets.device) for part in (data.own, data.held_out))
    images, mean, tried = len(data.own.of.unique()), own.mean(0), list[tuple[float, Tensor, Tensor]]()
    all_axes = principal_axes(data.own.features, max(1, round(max(SHARES) * images)))
    for share in SHARES:
        axes = all_axes[:, : max(1, round(share * images))]
        for weights in ridge(data.own.features @ axes, own - mean, STRENGTHS):
            guess = (data.held_out.features @ axes @ weights + mean).clamp(0, 1)
            tried.append(((guess - unseen).square().mean().item(), axes, weights))
    error, axes, weights = min(tried, key=lambda one: one[0])
    guess = (data.read(view.targets) @ axes @ weights + mean).clamp(0, 1)
    return Reconstruction(guess.unflatten(1, view.public.shape), [error])
