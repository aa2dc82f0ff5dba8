"""Generative attack: search the latent of an image model, not pixels, for what the device would send as observed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attcem.attacks.base import Attack, Reconstruction
from attcem.attacks.decoder import Decoder, owned
from attcem.attacks.inverter import PATCH, Residual, Unfold, zeroed
from attcem.attacks.optimise import Match, Problem, adam
from attcem.attacks.pairs import hold_out
from attcem.data.loader import Loader
from attcem.progress import bar
from attcem.types import Images, Released, View

TOGETHER, MEASURED = 64, 256
"""Images searched at a time; public images to learn from how wrong the decoder is."""

REFINEMENTS = (0.03, 0.3, 3.0, 30.0)
"""Weights of the penalty on what is added to the generated image, in units of 1 / its mean square on public images."""


class VAE(nn.Module):
    """Variational autoencoder that starts as probabilistic PCA, the best linear one (Tipping and Bishop 1999).

    Both halves are the linear map plus what convolutions add to it, which starts at zero.
    """

    mean: Tensor

    def __init__(self, pixels: Float[Tensor, "n c h w"], dimensions: int, channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", pixels.mean(0))
        colours, height, width = self.mean.shape
        grid = math.ceil(height / PATCH), math.ceil(width / PATCH)
        self.missing = 0, grid[1] * PATCH - width, 0, grid[0] * PATCH - height
        cells = channels * math.prod(grid)
        self.project = nn.Linear(self.mean.numel(), 2 * dimensions)
        self.look = nn.Sequential(
            nn.PixelUnshuffle(PATCH), nn.Conv2d(colours * PATCH**2, channels, 3, padding=1), Residual(channels)
        )
        self.add = zeroed(nn.Linear(cells, 2 * dimensions))
        self.paint = nn.Linear(dimensions, self.mean.numel(), bias=False)
        self.spread = nn.Sequential(nn.Linear(dimensions, cells), nn.Unflatten(1, (channels, *grid)))
        self.body = nn.Sequential(nn.GELU(), Residual(channels), Residual(channels))
        fine = max(8, channels // 8)
        self.unfold = Unfold(channels, fine, 3, PATCH)
        self.out = zeroed(nn.Conv2d(fine, colours, 3, padding=1))
        self.start_linear(pixels)

    @torch.no_grad()
    def start_linear(self, pixels: Float[Tensor, "n c h w"]) -> None:
        """The maximum likelihood solution: axes u_k, variances λ_k, and the mean s² of the variances left out."""
        flat = (pixels - self.mean).flatten(1)
        dimensions = self.paint.in_features
        _, size, axes = torch.pca_lowrank(flat, q=min(dimensions + 16, *flat.shape), center=False, niter=4)
        variance, axes = size[:dimensions].square() / len(flat), axes[:, :dimensions]
        left = (flat.square().sum() / len(flat) - variance.sum()).clamp_min(0) / max(1, flat.shape[1] - dimensions)
        variance, left = variance.clamp_min(1e-8), left.clamp_min(1e-8)
        gain = (variance - left).clamp_min(0).sqrt()
        self.paint.weight.copy_(axes * gain)
        self.project.weight.copy_(torch.cat([(axes * gain / variance).T, torch.zeros_like(axes.T)]))
        spread = (left / torch.maximum(variance, left)).log()
        self.project.bias.copy_(torch.cat([torch.zeros_like(spread), spread]))

    def encode(self, x: Float[Tensor, "b c h w"]) -> tuple[Float[Tensor, "b k"], Float[Tensor, "b k"]]:
        """Mean and log variance of the latent of these images."""
        away = x - self.mean
        cells = F.gelu(self.look(F.pad(away, self.missing)))
        centre, spread = (self.project(away.flatten(1)) + self.add(cells.flatten(1))).chunk(2, 1)
        return centre, spread.clamp(-12, 4)

    def generate(self, w: Float[Tensor, "b k"]) -> Float[Tensor, "b c h w"]:
        """The image of a latent, not clamped."""
        height, width = self.mean.shape[1:]
        added = self.out(F.gelu(self.unfold(self.body(self.spread(w)))))[..., :height, :width]
        return self.mean + self.paint(w).unflatten(1, self.mean.shape) + added


def negative_bound(x: Tensor, painted: Tensor, centre: Tensor, spread: Tensor) -> Float[Tensor, ""]:
    """−ELBO per pixel with the best variance for the batch (Rybkin et al. 2021): ½ log MSE + KL(q ‖ N(0, I)) / d."""
    divergence = 0.5 * (centre.square() + spread.exp() - 1 - spread).sum(1).mean()
    return 0.5 * F.mse_loss(painted, x).clamp_min(1e-6).log() + divergence / x[0].numel()


@dataclass(frozen=True)
class Prior:
    """An image model of the attacker's public images: a VAE, kept in its notes."""

    dimensions: int = 512
    channels: int = 32
    steps: int = 400
    batch: int = 64
    lr: float = 2e-3

    def trained(self, view: View, images: Images, seed: int, progress: bool = False) -> VAE:
        """The trained model of these images, found in the attacker's notes if it was trained before."""
        known = (self, len(images), seed)
        if known not in view.notes:
            with torch.random.fork_rng():
                torch.manual_seed(seed)
                view.notes[known] = self.train(images, view.targets.device, seed, progress)
        return view.notes[known]

    def train(self, images: Images, device: torch.device, seed: int, progress: bool) -> VAE:
        """From the linear start, while the learning rate falls to zero."""
        pixels = images.pixels().to(device)
        model = VAE(pixels, min(self.dimensions, len(images), pixels[0].numel()), self.channels).to(device)
        loader = Loader(images, self.batch, device=device, seed=seed)
        linear = [*model.project.parameters(), *model.paint.parameters()]
        rest = [p for p in model.parameters() if all(p is not known for known in linear)]
        groups = [{"params": rest, "share": 1.0}, {"params": linear, "share": 0.1}]
        optimiser = torch.optim.Adam(groups, betas=(0.9, 0.99))
        batches = chain.from_iterable(map(loader.epoch, count()))
        with bar("image model", self.steps, unit_size=self.batch, shown=progress) as show:
            for step, (x, _) in enumerate(islice(batches, self.steps)):
                share = step / self.steps
                for group in optimiser.param_groups:
                    group["lr"] = group["share"] * self.lr * min(1.0, 10 * share + 0.02) * (1 - share)
                centre, spread = model.encode(x)
                w = centre + (spread / 2).exp() * torch.randn_like(centre)
                loss = negative_bound(x, model.generate(w), centre, spread)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimiser.step()
                show(step + 1, bound=loss.item())
        return model.eval().requires_grad_(False)


@dataclass(frozen=True)
class Generative(Attack):
    """Searches an image model's latent, then pixels, for what encodes to the observation, near a decoder's guess.

    With G the model and w₀ its code of the guess, the picture is x(w) = guess + G(w) − G(w₀). First
    min_w match(x(w), z) / t + Σ (w − w₀)²/τ², then min_x match(x, z) + c·‖x − x(w)‖². Public images tell τ, how far the
    codes of guesses are from those of the truth (the model's own N(0, I) where a guess says nothing), and t, what
    mismatch the model leaves. On a few, c is tuned, and how far to go from the guess to what was found.
    """

    images: int = 32
    steps: int = 200
    tuning: int = 16
    """Public images to tune on."""
    lr: float = 0.05
    prior: Prior = field(default_factory=Prior)
    start: Decoder = field(default_factory=lambda: Decoder(64, 4))

    @property
    def needs(self) -> frozenset[str]:
        """The device's weights and gradients."""
        return frozenset({"public", "queries", "weights", "gradients"})

    def brief(self) -> Generative:
        """A few images, a few steps, an image model that is all but linear."""
        start = replace(self.start, channels=16, blocks=1).brief()
        prior = replace(self.prior, dimensions=32, channels=16, steps=20)
        return replace(self, images=min(8, self.images), steps=60, tuning=8, prior=prior, start=start)

    def __call__(self, view: View, *, seed: int = 0, progress: bool = False) -> Reconstruction:
        """Train or find decoder and image model, tune on public images, search for the first targets."""
        if view.oracle is None or view.device is None:
            raise ValueError("this attack needs the device's weights: choose the threat model white_box")
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            own, held_out = hold_out(owned(self.start, view.public), seed)
            decoder = self.start.trained(view, seed, progress)
            model = self.prior.trained(view, own, seed, progress)
            x = held_out[:MEASURED].pixels().to(view.targets.device)
            z = torch.cat([view.oracle(part) for part in x.split(TOGETHER)])
            known = x, decoder.invert(z), z
            search = Search(model, Match(view, seed), *known, self)
            weight, share, curve = search.tuned(*(part[: self.tuning] for part in known))
            guess, found = decoder.invert(view.targets[: self.images]), list[Tensor]()
            if not share:
                return Reconstruction(guess, curve)
            with bar("generative", len(guess), shown=progress) as show:
                for start, seen in zip(guess.split(TOGETHER), view.targets[: self.images].split(TOGETHER), strict=True):
                    found.append(search.refine(search.paint(start, seen), seen, weight))
                    show(sum(map(len, found)))
        return Reconstruction((guess + share * (torch.cat(found) - guess)).clamp(0, 1), curve)


class Search:
    """Both searches, scaled by what is known of public images x, a decoder's guesses of them, and their releases z."""

    def __init__(
        self,
        model: VAE,
        match: Match,
        x: Float[Tensor, "b c h w"],
        guess: Float[Tensor, "b c h w"],
        z: Released,
        settings: Generative,
    ) -> None:
        self.model, self.match, self.settings = model, match, settings
        with torch.no_grad():
            truth, start = model.encode(x)[0], model.encode(guess)[0]
            self.tau = (truth - start).square().mean(0).clamp_min(1e-4)
            best = guess + model.generate(truth) - model.generate(start)
            left = torch.cat([match(*part) for part in zip(best.split(TOGETHER), z.split(TOGETHER), strict=True)])
        self.error = (best - x).square().mean().clamp_min(1e-6).item()
        self.temper = max(1.0, left.mean().item() / z[0].numel())

    def paint(self, guess: Float[Tensor, "b c h w"], z: Released) -> Float[Tensor, "b c h w"]:
        """Search the model's latent, starting at the guess."""
        with torch.no_grad():
            start = self.model.encode(guess)[0]
            rest = guess - self.model.generate(start)
        w = start.clone().requires_grad_()
        optimiser, steps = torch.optim.Adam([w]), self.settings.steps
        for step in range(steps):
            optimiser.param_groups[0]["lr"] = self.settings.lr * min(1.0, 2 * (1 - step / steps))
            mismatch = self.match(rest + self.model.generate(w), z) / self.temper
            (mismatch + ((w - start).square() / self.tau).sum(1)).sum().backward(inputs=[w])
            optimiser.step()
            optimiser.zero_grad()
        with torch.no_grad():
            return (rest + self.model.generate(w)).clamp(0, 1)

    def refine(self, painted: Float[Tensor, "b c h w"], z: Released, weight: float) -> Float[Tensor, "b c h w"]:
        """Search the pixels near what was painted; an infinite weight leaves it as it is."""
        if math.isinf(weight):
            return painted
        anchor = weight * torch.ones(len(z)).to(painted)
        near = Problem(self.match, z, painted, anchor, torch.zeros_like(anchor))
        return adam(near, painted, self.settings.steps)[0]

    def tuned(
        self, x: Float[Tensor, "b c h w"], guess: Float[Tensor, "b c h w"], z: Released
    ) -> tuple[float, float, list[float]]:
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
