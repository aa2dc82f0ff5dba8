"""Substitute attack: without a single query, guess the encoder from what it must do, then invert the guess."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attcem.attacks.base import Attack, Pictures, Reconstruction, seeded
from attcem.attacks.decoder import Decoder, DecoderAttack
from attcem.attacks.likeness import Likeness
from attcem.attacks.observed import Encoder, Observed, as_picture
from attcem.attacks.pairs import AUGMENT, hold_out
from attcem.data.loader import Loader
from attcem.maths import gaussian_like
from attcem.progress import bar, say
from attcem.types import Latent, Recording, Released, View

DISTRUSTS = (0.0, 0.3, 1.0)
"""How far a substitute may be from the device, in deviations of a channel: what to choose from."""


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
    """Tries an amount of distrust."""
    channels: int = 32
    steps: int = 400
    batch: int = 128
    lr: float = 2e-3
    likeness: float = 1.0  # weight of likeness to the observed latents against serving the cloud

    needs = frozenset({"public", "labels", "logits"})

    @property
    def effort(self) -> float:
        return self.steps * self.batch + len(DISTRUSTS) * self.trial.effort + self.inverter.effort

    def brief(self) -> Substitute:
        return replace(self, inverter=Decoder(16, 1).brief(), trial=Decoder(8, 1).brief(), steps=20)

    def __call__(self, view: View, *, seed: int = 0, progress: bool = False) -> Reconstruction:
        return self.through(lambda observed: self.substitute(view, observed, seed, progress), view, seed, progress)

    def through(
        self, substitute: Callable[[Observed], Encoder], view: View, seed: int = 0, progress: bool = False
    ) -> Reconstruction:
        """Invert what was observed as if it came from a substitute, wherever that was learned."""
        with seeded(seed):
            observed = Observed.of(view)
            if observed.silent:
                mean = view.public.mean().to(view.targets.device)
                return Reconstruction(mean.expand(len(view.targets), -1, -1, -1).contiguous())
            known = as_picture(view, observed)
            encoder = known or substitute(observed)
            distrust = 0.0 if known else self.distrust(view, observed, encoder, seed, progress)
            return self.inverter(made_up(view, observed, encoder, distrust), seed=seed, progress=progress)

    def distrust(self, view: View, observed: Observed, encoder: Encoder, seed: int, progress: bool = False) -> float:
        missed = {}
        for amount in DISTRUSTS:
            inverter = self.trial.trained(made_up(view, observed, encoder, amount), seed)
            with torch.no_grad():
                again = torch.cat([encoder(inverter.invert(part)) for part in view.targets.split(256)])
            missed[amount] = ((again - view.targets) / observed.spread).square().mean().item()
        said = ", ".join(f"{amount:g}: {error:.3f}" for amount, error in missed.items())
        say(f"substitute encoder: what its guesses miss of the observed latents, by distrust {said}", shown=progress)
        return min(missed, key=missed.__getitem__)

    def substitute(
        self, view: View, observed: Observed, seed: int, progress: bool = False, start: Network | None = None
    ) -> Network:
        """Cross-entropy through the cloud + likeness · distance to the observed latents of the predicted classes.

        With a `start`, a copy of it goes on learning.
        """
        assert view.cloud is not None
        (own, _), where = hold_out(view.public, seed), view.targets.device
        network = Network(own.shape, observed, self.channels) if start is None else copy.deepcopy(start)
        network, likeness = network.to(where).train(), Likeness(observed.latents)
        optimiser = torch.optim.Adam(network.parameters(), self.lr, betas=(0.9, 0.99))
        loader = Loader(own, self.batch, device=where, augment=AUGMENT, seed=seed)
        batches = chain.from_iterable(map(loader.epoch, count()))
        with bar("substitute encoder", self.steps, unit_size=self.batch, shown=progress) as show:
            for step, (x, y) in enumerate(islice(batches, self.steps)):
                share = step / self.steps
                rate = self.lr * min(1.0, 10 * share + 0.05) * (1 + math.cos(math.pi * share)) / 2
                optimiser.param_groups[0]["lr"] = rate
                clean = network(x)
                released = clean + observed.noise * gaussian_like(clean)
                logits = view.cloud(released)
                task, classes = nn.functional.cross_entropy(logits, y), logits.argmax(1)
                unlike = likeness(released, observed.like(classes), classes)
                optimiser.zero_grad()
                (task + self.likeness * unlike).backward(inputs=list(network.parameters()))  # not the victim's
                optimiser.step()
                show(step + 1, task=task.item(), unlike=unlike.item())
        say(f"substitute encoder: task loss {task.item():.3f}, distance {unlike.item():.3f}", shown=progress)
        return network.eval()


class Network(nn.Module):
    """A substitute encoder: 3×3 convolutions, halving the picture down to the latent's grid."""

    def __init__(self, image: tuple[int, int, int], observed: Observed, channels: int) -> None:
        super().__init__()
        latent, (width, *sides) = observed.latents.shape[1:], image
        self.squash = observed.squash
        grid = list(latent[1:]) if len(latent) == 3 else [4, 4]
        self.layers = nn.Sequential(*convolution(width, channels))
        width = channels
        while all(side >= 2 * cells for side, cells in zip(sides, grid, strict=True)):
            wider = min(2 * width, 4 * channels)
            self.layers.extend([nn.MaxPool2d(2, ceil_mode=True), *convolution(width, wider)])
            width, sides = wider, [math.ceil(side / 2) for side in sides]
        if sides != grid:
            self.layers.append(nn.AdaptiveAvgPool2d((grid[0], grid[1])))
        if len(latent) == 3:
            self.layers.append(nn.Conv2d(width, latent[0], 3, padding=1))
        else:
            flat = nn.Linear(width * math.prod(grid), math.prod(latent))
            self.layers.extend([nn.Flatten(), flat, nn.Unflatten(1, tuple(latent))])

    def forward(self, x: Pictures) -> Latent:
        return self.squash(self.layers(x - 0.5))


def convolution(narrow: int, wide: int) -> tuple[nn.Module, ...]:
    return nn.Conv2d(narrow, wide, 3, padding=1), nn.BatchNorm2d(wide), nn.ReLU()


def made_up(view: View, observed: Observed, encoder: Encoder, distrust: float) -> View:
    """What an attacker with an oracle would see, were the encoder the device's but for so much distrust."""
    noise = torch.hypot(observed.noise, (distrust * observed.spread).expand_as(observed.noise))
    return View(view.public, MadeUpOracle(encoder, noise), view.targets, view.cloud)


class MadeUpOracle:
    """An oracle that the attacker made: an encoder that may be the device's, and noise like the device's."""

    def __init__(self, encoder: Encoder, noise: Float[Tensor, "*latent"]) -> None:
        self.encode, self.noise = torch.no_grad()(encoder), noise

    def release(self, z: Latent, repeats: int) -> Released:
        """The mean of so many noisy copies."""
        return z + self.noise * gaussian_like(z) / math.sqrt(repeats)

    def __call__(self, x: Pictures, repeats: int = 1) -> Released:
        return self.release(self.encode(x), repeats)

    def record(self, batches: Iterable[Pictures]) -> Recording:
        latents = torch.cat([self.encode(x) for x in batches])
        return lambda index, repeats=1: self.release(latents[index], repeats)
