"""Refined decoder: one step from a decoder's blurred guess towards what pictures show, at the same MSE."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice, pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attcem.attacks.base import Attack, Pictures, Reconstruction, seeded, update
from attcem.attacks.decoder import Decoder, DecoderAttack
from attcem.attacks.inversion import Inversion
from attcem.attacks.inverter import Residual, zeroed
from attcem.attacks.pairs import AUGMENT
from attcem.data.loader import Loader
from attcem.progress import bar, say
from attcem.types import Images, View


@dataclass(frozen=True)
class Viewer:
    """A small classifier of the attacker's public images: what it sees in a picture is what that shows."""

    channels: int = 32
    steps: int = 400
    batch: int = 128
    lr: float = 3e-3

    def trained(self, images: Images, device: torch.device, progress: bool = False) -> Sight:
        """On all public labels; where there is one class only it stays as it was drawn, and still tells textures."""
        labels, known = images.y.unique(return_inverse=True)
        images = Images(images.x, known, images.memory)
        sight = Sight(images.shape[0], self.channels, len(labels)).to(device)
        optimiser = torch.optim.AdamW(sight.parameters(), self.lr, weight_decay=0.05)
        loader = Loader(images, min(self.batch, len(images)), device=device, augment=AUGMENT)
        batches = chain.from_iterable(map(loader.epoch, count()))
        with bar("viewer", self.steps, unit_size=self.batch, shown=progress) as show:
            for step, (x, y) in enumerate(islice(batches, self.steps if len(labels) > 1 else 0)):
                optimiser.param_groups[0]["lr"] = self.lr * (1 - step / self.steps)
                loss = F.cross_entropy(sight(x), y, label_smoothing=0.1)
                update(optimiser, loss)
                show(step + 1, loss=loss.item())
        return sight.eval().requires_grad_(False)


class Sight(nn.Module):
    """Three halvings of the picture, pooled into logits."""

    def __init__(self, colours: int, channels: int, classes: int) -> None:
        super().__init__()
        self.depths = nn.ModuleList(
            nn.Sequential(nn.Conv2d(narrow, wide, 3, stride=2, padding=1), nn.BatchNorm2d(wide), nn.ReLU())
            for narrow, wide in pairwise([colours, channels, 2 * channels, 4 * channels])
        )
        self.head = nn.Linear(4 * channels, classes)

    def features(self, x: Pictures) -> list[Float[Tensor, "b _ _ _"]]:
        seen = [x - 0.5]
        for depth in self.depths:
            seen.append(depth(seen[-1]))
        return seen[1:]

    def forward(self, x: Pictures) -> Float[Tensor, "b classes"]:
        return self.head(self.features(x)[-1].mean((2, 3)))

    def apart(self, guess: Pictures, x: Pictures) -> Float[Tensor, ""]:
        """Mean over depths and places of ‖f(x̂) − f(x)‖², each of unit length."""
        pairs = zip(self.features(guess), self.features(x), strict=True)
        return torch.stack([(F.normalize(a) - F.normalize(b)).square().sum(1).mean() for a, b in pairs]).mean()


class Step(nn.Module):
    """What residual blocks at half the resolution of a guess would add to it: nothing at first."""

    def __init__(self, colours: int, channels: int, blocks: int) -> None:
        super().__init__()
        self.look = nn.Conv2d(4 * colours, channels, 3, padding=1)
        self.body = nn.Sequential(*(Residual(channels) for _ in range(blocks)))
        self.out = zeroed(nn.Conv2d(channels, 4 * colours, 3, padding=1))

    def forward(self, guess: Pictures) -> Pictures:
        height, width = guess.shape[2:]
        halves = F.pixel_unshuffle(F.pad(guess, (0, width % 2, 0, height % 2)), 2)
        added = F.pixel_shuffle(self.out(F.gelu(self.body(self.look(halves)))), 2)
        return added[..., :height, :width]


@dataclass(frozen=True)
class Refined(Attack):
    """Goes one step from a decoder's guess towards what pictures show, as far as its own validation MSE allows.

    The step r is trained behind the decoder, whose guess is g: min MSE(g + r(g), x) + w·‖f(g + r(g)) − f(x)‖² with f
    what a classifier of public images sees, and w such that both parts begin equal. Then x̂ = g + α·r(g) with the
    largest α ≤ 1 that the allowance permits: at a size two cores can train, the one-step flow from the guess to the
    image manifold of FIA-Flow.
    """

    start: DecoderAttack = field(default_factory=lambda: Decoder(64, 4))
    allowance: float = 0.02  # share of the start's MSE that it may give up: a tenth of a dB
    viewer: Viewer = field(default_factory=Viewer)
    channels: int = 48
    blocks: int = 3
    steps: int = 600
    batch: int = 64
    lr: float = 1e-3

    @property
    def about(self) -> str:
        size = self.start.decoder
        return (
            f"Goes one step from the guess of a decoder of {size.blocks} residual blocks of {size.channels} channels "
            f"towards what a classifier sees in pictures, at up to {self.allowance:.0%} more MSE."
        )

    @property
    def effort(self) -> float:
        return self.steps * self.batch + self.viewer.steps * self.viewer.batch / 4

    def brief(self) -> Refined:
        start = replace(self.start.first, channels=16, blocks=1).brief()
        viewer = replace(self.viewer, channels=8, steps=10)
        return replace(self, start=start, viewer=viewer, channels=8, blocks=1, steps=20)

    def __call__(self, view: View, *, seed: int = 0, progress: bool = False) -> Reconstruction:
        decoder = self.start.trained(view, seed, progress)
        with seeded(seed):
            step, share, curve = self.trained(decoder, progress)
            guess = decoder.invert(view.targets)
            with torch.no_grad():
                added = torch.cat([step(part) for part in guess.split(256)])
        return Reconstruction((guess + share * added).clamp(0, 1), curve, decoder.flags, decoder.gain)

    def trained(self, decoder: Inversion, progress: bool = False) -> tuple[Step, float, list[float]]:
        """The step, what share of it to take, and the validation MSE before and after."""
        sight = self.viewer.trained(decoder.own, decoder.device, progress)
        x, everything = decoder.held_out, torch.arange(len(decoder.held_out), device=decoder.device)
        with torch.no_grad():
            guess = torch.cat([decoder.invert(decoder.held_recording(part)) for part in everything.split(256)])
            far = torch.stack([sight.apart(*some) for some in zip(guess.split(256), x.split(256), strict=True)]).mean()
        before = F.mse_loss(guess, x).item()
        weight = before / max(1e-6, far.item())
        step = Step(x.shape[1], self.channels, self.blocks).to(decoder.device)
        optimiser = torch.optim.Adam(step.parameters(), self.lr, betas=(0.9, 0.99))
        data = chain.from_iterable(decoder.pairs.epoch(number, self.batch) for number in count(decoder.epochs))
        with bar("refined decoder", self.steps, unit_size=self.batch, shown=progress) as show:
            for number, (released, wanted) in enumerate(islice(data, self.steps)):
                optimiser.param_groups[0]["lr"] = self.lr * (1 + math.cos(math.pi * number / self.steps)) / 2
                begun = decoder.invert(released)
                refined = begun + step(begun)
                update(optimiser, F.mse_loss(refined, wanted) + weight * sight.apart(refined, wanted))
                show(number + 1)
        with torch.no_grad():
            added = torch.cat([step(part) for part in guess.split(256)])
        share = farthest(guess - x, added, self.allowance * before)
        after = F.mse_loss((guess + share * added).clamp(0, 1), x).item()
        say(f"refined decoder: {share:.2f} of a step, own MSE from {before:.5f} to {after:.5f}", shown=progress)
        return step, share, [before, after]


def farthest(error: Pictures, added: Pictures, rise: float) -> float:
    """The largest share α in [0,1] at which mean((e + α·a)²) is above mean(e²) by no more than this.

    2α·mean(e·a) + α²·mean(a²) = rise has one root that is not negative.
    """
    along, size = (error * added).mean().item(), added.square().mean().item()
    if size == 0:
        return 0.0
    return min(1.0, (math.sqrt(along**2 + size * rise) - along) / size)
