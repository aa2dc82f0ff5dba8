"""Adversarial decoder: a trained decoder gives up a little accuracy for pictures that look like pictures."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace
from itertools import chain, count, pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attcem.attacks.base import Attack, PerImage, Pictures, Reconstruction, seeded, update
from attcem.attacks.decoder import Decoder, DecoderAttack
from attcem.attacks.inversion import Inversion, snapshot
from attcem.progress import bar, say
from attcem.types import View

CHECKS = 10  # how often the attacker looks at its own validation loss on the way


@dataclass(frozen=True)
class AdversarialDecoder(Attack):
    """Fine-tunes a decoder against a critic that tells its guesses from public images.

    Wasserstein critic with gradient penalty (Gulrajani et al. 2017), as in the CEM paper. A decoder that minimises MSE
    shows the mean of all images that fit, which is blurred; this one shows a likely image near that mean.
    """

    start: DecoderAttack = field(default_factory=lambda: Decoder(64, 4))
    allowance: float = 0.05
    """Share of the start's validation loss that it may give up; it also sets the weight of the critic's word."""
    critic_steps: int = 1  # steps of the critic for each of the decoder
    penalty: float = 10.0  # weight of the critic's squared departure from slope 1
    steps: int = 600
    batch: int = 64
    lr: float = 3e-4

    @property
    def about(self) -> str:
        size = self.start.decoder
        return (
            f"Fine-tunes a decoder of {size.blocks} residual blocks of {size.channels} channels against "
            f"a Wasserstein critic, for sharper pictures at up to {self.allowance:.0%} more loss."
        )

    @property
    def effort(self) -> float:
        return self.steps * self.batch * (1 + self.critic_steps)

    def __call__(self, view: View, *, seed: int = 0, progress: bool = False) -> Reconstruction:
        start = self.start.trained(view, seed, progress)
        with seeded(seed):
            tuned, curve = self.tune(start, progress)
        return Reconstruction(tuned.invert(view.targets), curve, start.flags, start.gain)

    def brief(self) -> AdversarialDecoder:
        return replace(self, start=replace(self.start.first, channels=16, blocks=1).brief(), steps=20)

    def tune(self, start: Inversion, progress: bool = False) -> tuple[Inversion, list[float]]:
        """A fine-tuned copy of a trained inverter, and its validation losses.

        The weights of the last check within the allowance are kept; a check beyond it halves the critic's weight.
        """
        tuned = copy.copy(start)
        tuned.network = copy.deepcopy(start.network)
        critic = Critic(tuned.held_out.shape[1]).to(tuned.device)
        mine, its = (torch.optim.Adam(net.parameters(), self.lr, betas=(0.5, 0.9)) for net in (tuned.network, critic))
        curve = [tuned.validate()]
        weight = critic_weight(self.allowance * curve[0], tuned.held_out[0].numel())
        kept, every = snapshot(tuned.network), max(1, self.steps // CHECKS)
        data = chain.from_iterable(tuned.pairs.epoch(number, self.batch) for number in count(tuned.epochs))
        with bar("adversarial decoder", self.steps, unit_size=self.batch, shown=progress) as show:
            for step in range(1, self.steps + 1):
                share = step / self.steps  # the rate rises while the critic learns to see, and falls to zero
                mine.param_groups[0]["lr"] = self.lr * (min(1.0, 5 * share) * (1 + math.cos(math.pi * share)) / 2)
                for _ in range(self.critic_steps):
                    released, x = next(data)
                    with torch.no_grad():
                        guess = tuned.network(released)
                    update(its, critic(guess).mean() - critic(x).mean() + self.penalty * steepness(critic, guess, x))
                released, x = next(data)
                guess = tuned.network(released)
                update(mine, tuned.loss(guess, x) - weight * critic(guess).mean())
                if step == self.steps or step % every == 0:
                    curve.append(tuned.validate())
                    if curve[-1] <= (1 + self.allowance) * curve[0]:
                        kept = snapshot(tuned.network)
                    else:
                        weight /= 2
                show(step, loss=curve[-1])
        tuned.network.load_state_dict(kept)
        say(f"adversarial decoder: own validation loss from {curve[0]:.5f} to {curve[-1]:.5f}", shown=progress)
        return tuned, curve


class Critic(nn.Module):
    """Four strided convolutions and a sum: higher for public images than for guesses."""

    def __init__(self, colours: int, channels: int = 16) -> None:
        super().__init__()
        self.layers = nn.Sequential()
        for narrow, wide in pairwise([colours, channels, 2 * channels, 4 * channels]):
            self.layers.extend([nn.Conv2d(narrow, wide, 4, stride=2, padding=1), nn.LeakyReLU(0.2)])
        self.layers.append(nn.Conv2d(4 * channels, 1, 3, padding=1))

    def forward(self, x: Pictures) -> PerImage:
        return self.layers(x - 0.5).sum((1, 2, 3))


def critic_weight(rise: float, pixels: int) -> float:
    """The weight w at which a critic of slope 1 raises the MSE by `rise`: 2·√(rise / pixels).

    Moving a guess by δ off the mean costs |δ|²/pixels and gains at most w·|δ|, so it moves by w·pixels/2.
    """
    return 2 * math.sqrt(rise / pixels)


def steepness(critic: nn.Module, guess: Pictures, x: Pictures) -> Float[Tensor, ""]:
    """Mean of (|∇ critic| − 1)² half-way, anywhere, between guesses and images."""
    share = torch.rand(len(x), 1, 1, 1, device=x.device)
    between = (share * x + (1 - share) * guess).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (slope.flatten(1).norm(dim=1) - 1).square().mean()
