"""Generative attack: search the latent of an image model, not pixels, for what the device would send as observed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from attcem.attacks.base import WHITE_BOX, Attack, Pictures, Reconstruction, seeded
from attcem.attacks.decoder import Decoder, DecoderAttack
from attcem.attacks.errors import ErrorSpectrum
from attcem.attacks.image_model import VAE, Prior
from attcem.attacks.match import Match
from attcem.attacks.pairs import hold_out
from attcem.attacks.pixel_search import Problem, adam
from attcem.progress import bar
from attcem.types import Released, View

TOGETHER, MEASURED = 64, 256  # images searched at a time; public images to learn from how wrong the decoder is
REFINEMENTS = (0.03, 0.3, 3.0, 30.0)
"""Weights of the penalty on what is added to the generated image, in units of 1 / its mean square on public images."""


@dataclass(frozen=True)
class Generative(Attack):
    """Searches an image model's latent, then pixels, for what encodes to the observation, near a decoder's guess.

    With G the model and w₀ its code of the guess, the picture is x(w) = guess + G(w) − G(w₀). First
    min_w match(x(w), z) / t + Σ (w − w₀)²/τ², then min_x match(x, z) + c·‖x − x(w)‖². Public images tell τ, how far the
    codes of guesses are from those of the truth (the model's own N(0, I) where a guess says nothing), and t, what
    mismatch the model leaves. On a few, c is tuned, and how far to go from the guess to what was found.
    """

    needs = WHITE_BOX

    images: int = 32
    steps: int = 200
    tuning: int = 16  # public images to tune on
    lr: float = 0.05
    prior: Prior = field(default_factory=Prior)
    start: DecoderAttack = field(default_factory=lambda: Decoder(64, 4))

    @property
    def effort(self) -> float:
        searched = 3 * self.images + (2 + len(REFINEMENTS)) * self.tuning
        return self.prior.steps * self.prior.batch / 2 + self.steps * searched

    def brief(self) -> Generative:
        start = replace(self.start.first, channels=16, blocks=1).brief()
        prior = replace(self.prior, dimensions=32, channels=16, steps=20)
        return replace(self, images=min(8, self.images), steps=60, tuning=8, prior=prior, start=start)

    def __call__(self, view: View, *, seed: int = 0, progress: bool = False) -> Reconstruction:
        if view.oracle is None or view.device is None:
            raise ValueError("this attack needs the device's weights: choose the threat model white_box")
        with seeded(seed):
            own, held_out = hold_out(view.public, seed)
            decoder = self.start.trained(view, seed, progress)
            model = self.prior.trained(view, own, seed, progress)
            x = held_out[:MEASURED].pixels().to(view.targets.device)
            z = torch.cat([view.oracle(part) for part in x.split(TOGETHER)])
            known = x, decoder.invert(z), z
            search = Search(self, model, Match(view, seed), *known)
            weight, share, curve = search.tuned(*(part[: self.tuning] for part in known))
            guess, found = decoder.invert(view.targets[: self.images]), list[Tensor]()
            if not share:
                return Reconstruction(guess, curve, decoder.flags, decoder.gain)
            with bar("generative", len(guess), shown=progress) as show:
                for start, seen in zip(guess.split(TOGETHER), view.targets[: self.images].split(TOGETHER), strict=True):
                    found.append(search.refine(search.paint(start, seen), seen, weight))
                    show(sum(map(len, found)))
        images = (guess + share * (torch.cat(found) - guess)).clamp(0, 1)
        return Reconstruction(images, curve, decoder.flags, decoder.gain)


class Search:
    """Both searches, scaled by what is known of public images x, a decoder's guesses of them, and their releases z."""

    def __init__(self, attack: Generative, model: VAE, match: Match, x: Pictures, guess: Pictures, z: Released) -> None:
        self.attack, self.model, self.match = attack, model, match
        with torch.no_grad():
            truth, start = model.encode(x)[0], model.encode(guess)[0]
            self.tau = (truth - start).square().mean(0).clamp_min(1e-4)
            best = guess + model.generate(truth) - model.generate(start)
            left = torch.cat([match(*part) for part in zip(best.split(TOGETHER), z.split(TOGETHER), strict=True)])
        self.error = (best - x).square().mean().clamp_min(1e-6).item()
        self.temper = max(1.0, left.mean().item() / z[0].numel())

    def paint(self, guess: Pictures, z: Released) -> Pictures:
        with torch.no_grad():
            start = self.model.encode(guess)[0]
            rest = guess - self.model.generate(start)

        def objective(w: Tensor) -> Tensor:
            return self.match(rest + self.model.generate(w), z) / self.temper + ((w - start).square() / self.tau).sum(1)

        w, _ = adam(objective, start, self.attack.steps, lr=self.attack.lr, low=-math.inf, high=math.inf)
        with torch.no_grad():
            return (rest + self.model.generate(w)).clamp(0, 1)

    def refine(self, painted: Pictures, z: Released, weight: float) -> Pictures:
        """Search the pixels near what was painted; an infinite weight leaves it as it is."""
        if math.isinf(weight):
            return painted
        anchor = weight * torch.ones(len(z)).to(painted)
        near = Problem(self.match, ErrorSpectrum.even(painted), z, painted, anchor, torch.zeros_like(anchor))
        return adam(near, painted, self.attack.steps)[0]

    def tuned(self, x: Pictures, guess: Pictures, z: Released) -> tuple[float, float, list[float]]:
        """The refinement's weight and the share of the way to go that serve best here, and the errors on the way.

        The share is 0, which leaves the guess, unless going gains more than a standard error.
        """
        before = (guess - x).square().mean((1, 2, 3))
        painted, tried = self.paint(guess, z), list[tuple[float, float, Tensor]]()
        for weight in (*(unit / self.error for unit in REFINEMENTS), math.inf):
            away = self.refine(painted, z, weight) - guess
            share = float((((x - guess) * away).sum() / away.square().sum().clamp_min(1e-8)).clamp(0, 1))
            tried.append((weight, share, (guess + share * away - x).square().mean((1, 2, 3))))
        weight, share, after = min(tried, key=lambda found: found[2].mean().item())
        gain, curve = before - after, [before.mean().item(), after.mean().item()]
        if gain.mean() <= gain.std(correction=0) / math.sqrt(len(gain)):
            return math.inf, 0.0, curve[:1]
        return weight, share, curve
