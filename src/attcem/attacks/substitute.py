"""Substitute attack: without a single query, guess the encoder from what it must do, then invert the guess."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from attcem.attacks.base import Attack, Reconstruction, noise_variance
from attcem.attacks.decoder import Decoder, DecoderAttack
from attcem.attacks.inverter import identity
from attcem.attacks.likeness import Likeness, unnatural
from attcem.attacks.pairs import hold_out
from attcem.data.loader import Augment, Loader
from attcem.maths import gaussian_like
from attcem.progress import bar, say
from attcem.types import Latent, Recording, Released, View

Encoder = Callable[[Float[Tensor, "b c h w"]], Latent]

RESENT, BEYOND = 256, 5.0
"""Targets sent twice to measure the noise; standard deviations of it by which a value may leave its range."""

DOUBTS = (0.0, 0.3, 1.0)
"""How far a substitute may be from the device, in deviations of a channel: what to choose from."""

NATURAL = 0.25
"""Pictures whose mean, patch spectrum and roughness differ by less than this are of the same kind."""


@dataclass(frozen=True)
class Substitute(Attack):
    """Trains an encoder that serves the cloud half and sends latents like the observed ones, and inverts that.

    For an attacker that may neither query nor see the device: a pseudo-client (PCAT, Gao and Zhang 2023) whose latents
    are matched to the observed ones (as in SDAR, Zhu et al. 2023). A latent that looks like a picture is inverted as
    one instead. How noisy the release is, the attacker learns from a second send of some targets.

    The substitute is not the device: an inverter that trusts its every digit fails on the observed latents. So it
    learns from latents with noise that stands for the difference; of several amounts the one is taken whose guesses,
    sent by the substitute, come closest to what was observed.
    """

    inverter: DecoderAttack = field(default_factory=lambda: Decoder(64, 4, cycle=400, doublings=1))
    trial: DecoderAttack = field(default_factory=lambda: Decoder(32, 2, cycle=200, doublings=0))
    """Tries an amount of doubt."""
    channels: int = 32
    steps: int = 400
    batch: int = 128
    lr: float = 2e-3
    likeness: float = 1.0
    """Weight of likeness to the observed latents against serving the cloud."""

    @property
    def needs(self) -> frozenset[str]:
        """Labelled public images and the cloud half: no queries, no weights."""
        return frozenset({"public", "labels", "logits"})

    @property
    def effort(self) -> float:
        """An encoder, and decoders of it."""
        return self.steps * self.batch + len(DOUBTS) * self.trial.effort + self.inverter.effort

    def brief(self) -> Substitute:
        """A small inverter, a few steps."""
        return replace(self, inverter=Decoder(16, 1).brief(), trial=Decoder(8, 1).brief(), steps=20)

    def __call__(self, view: View, *, seed: int = 0, progress: bool = False) -> Reconstruction:
        """Settle for an encoder, learn to invert it, invert the targets."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            observed = Observed.of(view)
            if observed.silent:
                mean = view.public.pixels().mean(0).to(view.targets.device)
                return Reconstruction(mean.expand(len(view.targets), -1, -1, -1).contiguous())
            known = as_picture(view, observed)
            encoder = known or self.substitute(view, observed, seed, progress)
            doubt = 0.0 if known else self.doubt(view, observed, encoder, seed, progress)
            return self.inverter(pretended(view, observed, encoder, doubt), seed=seed, progress=progress)

    def doubt(self, view: View, observed: Observed, encoder: Encoder, seed: int, progress: bool = False) -> float:
        """The amount whose guesses the substitute sends most like what was observed."""
        missed = {}
        for amount in DOUBTS:
            inverter = self.trial.trained(pretended(view, observed, encoder, amount), seed)
            with torch.no_grad():
                parts = view.targets.split(256)
                again = torch.cat([encoder(inverter.invert(part)) for part in parts])
            missed[amount] = ((again - view.targets) / observed.spread).square().mean().item()
        said = ", ".join(f"{amount:g}: {error:.3f}" for amount, error in missed.items())
        say(f"substitute encoder: what its guesses miss of the observed latents, by doubt {said}", shown=progress)
        return min(missed, key=missed.__getitem__)

    def substitute(self, view: View, observed: Observed, seed: int, progress: bool = False) -> Network:
        """Cross-entropy through the cloud + likeness · distance to the observed latents of the predicted classes."""
        assert view.cloud is not None
        (own, _), where = hold_out(view.public, seed), view.targets.device
        loader = Loader(own, self.batch, device=where, augment=Augment(crop=2, flip=True), seed=seed)
        network, likeness = Network(own.shape, observed, self.channels).to(where), Likeness(observed.latents)
        optimiser = torch.optim.Adam(network.parameters(), self.lr, betas=(0.9, 0.99))
        batches = chain.from_iterable(map(loader.epoch, count()))
        with bar("substitute encoder", self.steps, unit_size=self.batch, shown=progress) as show:
            for step, (x, y) in enumerate(islice(batches, self.steps)):
                share = step / self.steps
                rate = self.lr * min(1.0, 10 * share + 0.05) * (1 + math.cos(math.pi * share)) / 2
                optimiser.param_groups[0]["lr"] = rate
                clean = network(x)
                released = clean + observed.noise * gaussian_like(clean)
                logits = view.cloud(released)
                task, classes = F.cross_entropy(logits, y), logits.argmax(1)
                unlike = likeness(released, observed.like(classes), classes)
                optimiser.zero_grad(set_to_none=True)
                (task + self.likeness * unlike).backward(inputs=list(network.parameters()))  # not the victim's
                optimiser.step()
                show(step + 1, task=task.item(), unlike=unlike.item())
        say(f"substitute encoder: task loss {task.item():.3f}, distance {unlike.item():.3f}", shown=progress)
        return network.eval()


@dataclass(frozen=True)
class Observed:
    """What the attacker has seen on the wire: latents, how noisy they are, and what the cloud makes of them."""

    latents: Released
    noise: Float[Tensor, "*latent"]
    classes: Int64[Tensor, " n"]

    @classmethod
    @torch.no_grad()
    def of(cls, view: View) -> Observed:
        """The noise is the difference of two sends of the same images, over √2."""
        if view.cloud is None:
            raise ValueError("a substitute learns through the cloud half: give the view its cloud")
        noise = torch.zeros_like(view.targets[0])
        if view.resend is not None:
            again = view.resend(min(RESENT, len(view.targets)))
            variance = noise_variance(again, view.targets[: len(again)])
            noise = (variance.mean((-2, -1), keepdim=True) if variance.ndim == 3 else variance).sqrt().expand_as(noise)
        classes = torch.cat([view.cloud(part).argmax(1) for part in view.targets.split(256)])
        return cls(view.targets, noise, classes)

    @property
    def spread(self) -> Float[Tensor, "*channels"]:
        """Deviation of every channel; of every value where a latent is flat."""
        within = [0, *range(2, self.latents.ndim)]
        return self.latents.std(within, correction=0, keepdim=True)[0].clamp_min(1e-6)

    @property
    def silent(self) -> bool:
        """Whether the latents vary no more than the noise does."""
        total, noise = self.latents.var(0, correction=0).sum(), self.noise.square().sum()
        return bool(total <= (1 + 4 * math.sqrt(2 / self.latents.numel())) * noise + 1e-12)

    @property
    def squash(self) -> Callable[[Tensor], Tensor]:
        """The activation that the observed range betrays."""
        slack = BEYOND * self.noise.max()
        low, high = self.latents.min() + slack, self.latents.max() - slack
        if high <= 1 and self.latents.max() > 0.5 and low >= -1:
            return torch.sigmoid if low >= 0 else torch.tanh
        return torch.relu if low >= 0 else identity

    def like(self, classes: Int64[Tensor, " b"]) -> Released:
        """Latents drawn at random, of these predicted classes where any was seen."""
        same = (classes[:, None] == self.classes).float()
        same[same.sum(1) == 0] = 1.0
        return self.latents[torch.multinomial(same, 1)[:, 0]]


class Network(nn.Module):
    """A substitute encoder: 3×3 convolutions, halving the picture down to the latent's grid."""

    def __init__(self, image: tuple[int, int, int], observed: Observed, channels: int) -> None:
        super().__init__()
        latent, (width, *sides) = observed.latents.shape[1:], image
        self.squash = observed.squash
        grid = list(latent[1:]) if len(latent) == 3 else [4, 4]
        layers: list[nn.Module] = [*convolution(width, channels)]
        width = channels
        while all(side >= 2 * cells for side, cells in zip(sides, grid, strict=True)):
            wider = min(2 * width, 4 * channels)
            layers += [nn.MaxPool2d(2, ceil_mode=True), *convolution(width, wider)]
            width, sides = wider, [math.ceil(side / 2) for side in sides]
        if sides != grid:
            layers.append(nn.AdaptiveAvgPool2d((grid[0], grid[1])))
        if len(latent) == 3:
            last: list[nn.Module] = [nn.Conv2d(width, latent[0], 3, padding=1)]
        else:
            flat = nn.Linear(width * math.prod(grid), math.prod(latent))
            last = [nn.Flatten(), flat, nn.Unflatten(1, tuple(latent))]
        self.layers = nn.Sequential(*layers, *last)

    def forward(self, x: Float[Tensor, "b c h w"]) -> Latent:
        """Clean latents."""
        return self.squash(self.layers(x - 0.5))


def convolution(narrow: int, wide: int) -> tuple[nn.Module, ...]:
    """One layer as most backbones have it."""
    return nn.Conv2d(narrow, wide, 3, padding=1), nn.BatchNorm2d(wide), nn.ReLU()


def pretended(view: View, observed: Observed, encoder: Encoder, doubt: float) -> View:
    """What an attacker with an oracle would see, were the encoder the device's but for so much doubt."""
    noise = torch.hypot(observed.noise, (doubt * observed.spread).expand_as(observed.noise))
    return View(view.public, Pretended(encoder, noise), view.targets, view.cloud)


class Pretended:
    """An oracle that the attacker made: an encoder that may be the device's, and noise like the device's."""

    def __init__(self, encoder: Encoder, noise: Float[Tensor, "*latent"]) -> None:
        self.encode, self.noise = torch.no_grad()(encoder), noise

    def release(self, z: Latent, repeats: int) -> Released:
        """The mean of so many noisy copies."""
        return z + self.noise * gaussian_like(z) / math.sqrt(repeats)

    def __call__(self, x: Float[Tensor, "b c h w"], repeats: int = 1) -> Released:
        """What the device might send."""
        return self.release(self.encode(x), repeats)

    def record(self, batches: Iterable[Float[Tensor, "b c h w"]]) -> Recording:
        """Encoded once, released afresh."""
        latents = torch.cat([self.encode(x) for x in batches])
        return lambda index, repeats=1: self.release(latents[index], repeats)


@torch.no_grad()
def as_picture(view: View, observed: Observed) -> Encoder | None:
    """The encoder that would send pictures as they are, or stretched, if the observed latents look like that."""
    (colours, height, width), latent = view.public.shape, tuple(observed.latents.shape[1:])
    fold = math.isqrt(latent[0] // colours) if len(latent) == 3 else 0
    if fold < 1 or latent != (colours * fold**2, height / fold, width / fold):
        return None
    pixels = view.public.pixels().to(view.targets.device)
    plain = F.pixel_unshuffle(pixels, fold)
    each = [0, 2, 3]
    signal = (observed.latents.var(each, correction=0) - observed.noise.square().mean((1, 2))).clamp_min(0)
    scale = (signal / plain.var(each, correction=0).clamp_min(1e-8)).sqrt()[:, None, None]
    offset = observed.latents.mean(each)[:, None, None] - scale * plain.mean(each)[:, None, None]
    for gain, shift in ((torch.ones_like(scale), torch.zeros_like(offset)), (scale, offset)):
        sent = gain * plain + shift
        sent = sent + observed.noise * gaussian_like(sent)
        if unnatural(F.pixel_shuffle(observed.latents, fold), F.pixel_shuffle(sent, fold)) < NATURAL:
            return lambda x, gain=gain, shift=shift: gain * F.pixel_unshuffle(x, fold) + shift  # type: ignore[misc]
    return None
