"""Decoder attack: learn the inverse of the device from public images and its own queries."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from attcem.attacks.base import QUERY, Attack, Reconstruction, seeded
from attcem.attacks.inversion import Inversion, Recipe
from attcem.attacks.inverter import Inverter
from attcem.progress import say
from attcem.types import View


@dataclass(frozen=True, kw_only=True)
class DecoderAttack(Recipe, Attack):
    """Trains an inverter on freshly released latents of public images until doubling the effort gains nothing.

    Training runs in cycles, each twice as long as the last and each ending at learning rate 0. When a cycle lowers the
    attacker's own validation loss by less than `tolerance`, the loss has plateaued. `doublings` caps the effort: if
    the last cycle allowed still gained more than that, the attack says so.

    With a `start` it goes on from the weights of that one, in a network that grows from its network: in a fraction of
    the steps it is where it would be, and what is new adds to a guess that is already good.
    """

    cycle: int = 600  # steps of the first cycle
    doublings: int = 5
    tolerance: float = 0.02
    start: DecoderAttack | None = None  # trained first, or found trained

    @property
    @abstractmethod
    def decoder(self) -> Decoder:
        """The decoder that says how wide and deep the network is."""

    @property
    @abstractmethod
    def words(self) -> list[str]:
        """What it does, for `attcem list`."""

    @property
    def about(self) -> str:
        return f"{', '.join(self.words)}; trained on fresh queries until doubling the effort gains nothing."

    @property
    def needs(self) -> frozenset[str]:
        return QUERY if self.start is None else self.start.needs

    @property
    def most_steps(self) -> int:
        """Steps of all cycles that it is allowed, without those of its start."""
        return self.cycle * (2 ** (self.doublings + 1) - 1)

    @property
    def effort(self) -> float:
        return self.batch * self.most_steps * (0.4 + self.decoder.weights / 25_000)

    @property
    def first(self) -> Decoder:
        """The one that began afresh, at the beginning of its starts."""
        return self.decoder if self.start is None else self.start.first

    def __call__(self, view: View, *, seed: int = 0, progress: bool = False) -> Reconstruction:
        training = self.trained(view, seed, progress)
        with seeded(seed):
            images = training.invert(view.targets)
        return Reconstruction(images, training.curve, training.flags, training.gain, training.state)

    def brief(self) -> DecoderAttack:
        return replace(self, cycle=8, doublings=1, batch=min(16, self.batch), start=self.start and self.first.brief())

    def trained(self, view: View, seed: int = 0, progress: bool = False) -> Inversion:
        return view.workbook.model(self, seed, lambda: self.train_on(view, seed, progress))

    def train_on(self, view: View, seed: int, progress: bool) -> Inversion:
        with seeded(seed):
            before = None if self.start is None else self.start.trained(view, seed, progress)
            training, found = Inversion(self, view, seed, before), view.workbook.finds.get((self, seed))
            return training.restored(found) if found else self.train(training, progress)

    def train(self, training: Inversion, progress: bool) -> Inversion:
        title, before = f"decoder {self.decoder.channels}×{self.decoder.blocks}", math.inf
        for doubling in range(self.doublings + 1):
            cycle = training.run_cycle if doubling or self.start else training.first_cycle
            reached = cycle(self.cycle * 2**doubling, title, progress)
            say(f"{title}: own validation loss {reached:.5f} after {training.steps:,} steps", shown=progress)
            training.plateaued = reached > (1 - self.tolerance) * before
            training.gain = max(0.0, 1 - reached / before) if doubling else None
            if training.plateaued:
                break
            before = reached
        training.rest()
        return training


@dataclass(frozen=True)
class Decoder(DecoderAttack):
    """Inverts latents with residual blocks of convolutions, deeper than its start if it has one."""

    channels: int
    blocks: int
    attention: bool = False  # cells also look at each other, half-way through the blocks, or behind those of its start

    def __post_init__(self) -> None:
        its = (self.start or self).decoder
        if its.channels != self.channels or its.blocks > self.blocks or its.attention > self.attention:
            raise ValueError(
                f"a decoder of {self.channels} channels and {self.blocks} blocks cannot start from one of "
                f"{its.channels} and {its.blocks}: choose a start that is as wide, no deeper, and without attention "
                "unless this one has it"
            )

    @property
    def decoder(self) -> Decoder:
        return self

    @property
    def weights(self) -> int:
        """In proportion to the weights of its blocks."""
        return self.channels**2 * self.blocks

    @property
    def words(self) -> list[str]:
        words = [f"Inverts latents with {self.blocks} residual blocks of {self.channels} channels"]
        words += ["attention between cells"] * self.attention + ["a loss of MSE and SSIM"] * (self.loss == "mse_ssim")
        return words + ([] if self.start is None else [f"from a trained one of {self.start.decoder.blocks} blocks"])

    @property
    def only_size_differs(self) -> bool:
        start = self.start
        return self.loss == "mse" and (start is None or (isinstance(start, Decoder) and start.only_size_differs))

    def network(self, training: Inversion, before: Inverter | None) -> Inverter:
        if before is None:
            released, x = training.first_pairs()
            mean = training.own.mean().to(training.device)
            new = Inverter(released, mean, self.channels, self.blocks, attention=self.attention).to(training.device)
            new.solve_linear(zip(released.split(64), x.split(64), strict=True))
            return new
        its = (self.start or self).decoder
        before.deepen(self.blocks - its.blocks, attention=self.attention and not its.attention)
        return before


@dataclass(frozen=True)
class Grown(DecoderAttack):
    """A wrapper around a decoder: goes on from it with a network that also reads something new."""

    start: DecoderAttack = field()

    @property
    def decoder(self) -> Decoder:
        return self.start.decoder


def sizes(suite: Mapping[str, Attack]) -> dict[str, Decoder]:
    decoders = {name: attack for name, attack in suite.items() if isinstance(attack, Decoder)}
    return {name: decoder for name, decoder in decoders.items() if decoder.only_size_differs}
