"""Decoder attack: learn the inverse of the device from public images and its own queries."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from attcem.attacks.base import Attack, Reconstruction
from attcem.attacks.inversion import Inversion, Settings
from attcem.attacks.pairs import observed, unchanging
from attcem.progress import say
from attcem.types import View


@dataclass(frozen=True)
class Decoder(Settings, Attack):
    """Trains an inverter on freshly released latents of public images until doubling the effort gains nothing.

    Training runs in cycles, each twice as long as the last and each ending at learning rate 0. When a cycle lowers the
    attacker's own validation loss by less than `tolerance`, the loss has plateaued. `doublings` caps the effort: if
    the last cycle allowed still gained more than that, the attack says so.

    With a `start` it goes on from what that one has learnt, in a network at least as deep, or by another loss: in a
    fraction of the steps it is where it would be, and further blocks add to a guess that is already good.
    """

    cycle: int = 600
    """Steps of the first cycle."""
    doublings: int = 5
    tolerance: float = 0.02
    start: Decoder | None = None
    """Trained first, or found trained."""

    def __post_init__(self) -> None:
        if self.feedback and self.start is None:
            raise ValueError("a decoder asks the device about the guess of its start: give it one")
        if self.start is not None and not self.contains(self.start):
            raise ValueError("a decoder goes on from one that saw the same, as wide and no deeper: mend its start")

    def contains(self, other: Decoder) -> bool:
        """Whether its network is the other's and possibly more, and learns from the same."""
        same, more = ("channels", "repeats", "pairs", "shifted"), ("blocks", "attention", "class_aware", "feedback")
        alike = all(getattr(self, field) == getattr(other, field) for field in same)
        return alike and all(getattr(self, field) >= getattr(other, field) for field in more)

    @property
    def about(self) -> str:
        """One line for `attcem list`."""
        words = [f"Inverts latents with {self.blocks} residual blocks of {self.channels} channels"]
        words += ["attention between cells"] * self.attention + ["a loss of MSE and SSIM"] * (self.loss == "mse_ssim")
        words += ["the cloud's logits and class means"] * self.class_aware
        words += ["the device's answer to its first guess"] * self.feedback
        words += [f"{self.repeats} sends of every image"] * (self.repeats > 1)
        words += [] if self.pairs is None else [f"only {self.pairs:,} public images"]
        words += ["public images of half of the classes"] * self.shifted
        words += [] if self.start is None else [f"from what {self.start.blocks} blocks have learnt"]
        return f"{', '.join(words)}; trained on fresh queries until doubling the effort gains nothing."

    @property
    def needs(self) -> frozenset[str]:
        """Queries, and the cloud half where its logits are read."""
        return super().needs | (frozenset({"labels", "logits"}) if self.class_aware else frozenset())

    @property
    def plain(self) -> bool:
        """Whether only its size tells it from others."""
        return self == replace(
            self, loss="mse", class_aware=False, feedback=False, repeats=1, pairs=None, shifted=False
        )

    @property
    def effort(self) -> float:
        """Grows with the weights of its blocks, more if guesses are sent to the device."""
        pictures = self.batch * self.most_steps * (1 + 0.6 * self.feedback)
        return pictures * (0.4 + self.channels**2 * self.blocks / 25_000)

    @property
    def most_steps(self) -> int:
        """Its own, without those of its start, if no cycle finds a plateau."""
        return self.cycle * (2 ** (self.doublings + 1) - 1)

    @property
    def builds_on(self) -> Decoder:
        """Its start, if it has one."""
        return self.start or self

    @property
    def first(self) -> Decoder:
        """The one that began afresh, at the beginning of its starts."""
        return self if self.start is None else self.start.first

    @property
    def observations(self) -> int:
        """As many as it averages."""
        return self.repeats

    def __call__(self, view: View, *, seed: int = 0, progress: bool = False) -> Reconstruction:
        """Train on public images, keep the best validated weights, invert the targets."""
        training = self.trained(view, seed, progress)
        seen = observed(view, self.repeats, seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            images = training.invert(seen)
        return Reconstruction(images, training.curve, training.doubts, training.gain, training.learnt)

    def brief(self) -> Decoder:
        """Two cycles of a few small steps, from the first of its starts."""
        start = None if self.start is None else self.first.brief()
        return replace(self, cycle=8, doublings=1, batch=min(16, self.batch), start=start)

    def trained(self, view: View, seed: int = 0, progress: bool = False) -> Inversion:
        """The trained inverter, found in the attacker's notes if it was trained before.

        The average of sends that are all the same is one of them, and so is what there is to learn.
        """
        if self.repeats > 1 and unchanging(view):
            return self.of_one_send().trained(view, seed, progress)
        if (self, seed) not in view.notes:
            with torch.random.fork_rng():
                torch.manual_seed(seed)
                before = None if self.start is None else self.start.trained(view, seed, progress)
                training, found = Inversion(self, view, seed, before), view.notes.get(("found", self, seed))
                view.notes[self, seed] = training.restored(found) if found else self.train(training, progress)
        return view.notes[self, seed]

    def of_one_send(self) -> Decoder:
        """The same without averages."""
        return replace(self, repeats=1, start=self.start and self.start.of_one_send())

    def train(self, training: Inversion, progress: bool) -> Inversion:
        """Cycles of doubling length, until one gains nothing or the effort is spent."""
        title, before = f"decoder {self.channels}×{self.blocks}", math.inf
        for doubling in range(self.doublings + 1):
            cycle = training.run_cycle if doubling or self.start else training.first_cycle
            reached = cycle(self.cycle * 2**doubling, title, progress)
            say(f"{title}: own validation loss {reached:.5f} after {training.steps:,} steps", shown=progress)
            training.plateaued = reached > (1 - self.tolerance) * before
            training.gain = max(0.0, 1 - reached / before) if doubling else None
            if training.plateaued:
                break
            before = reached
        return training
