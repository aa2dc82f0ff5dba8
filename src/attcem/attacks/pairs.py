"""Public images with what the device sends for them: the encoder is paid once, the noise is fresh at every draw."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from attcem.attacks.base import Pictures
from attcem.data.loader import Augment, Loader, in_order, shift_flip
from attcem.types import Images, Oracle, Recording, Released, View

AUGMENT = Augment(crop=2, flip=True)
VARIANTS, BUDGET = 8, 2**30
"""Shifted and mirrored copies of the public images, as many as fit into so many bytes of latents."""


@dataclass(frozen=True)
class Averaged:
    """An oracle whose every answer is the mean of so many."""

    oracle: Oracle
    times: int

    def __call__(self, x: Pictures, repeats: int = 1) -> Released:
        return self.oracle(x, repeats * self.times)

    def record(self, batches: Iterable[Pictures]) -> Recording:
        recording = self.oracle.record(batches)
        return lambda index, repeats=1: recording(index, repeats * self.times)


class Pairs:
    """Endless batches of (released, image).

    Epoch after epoch another shifted and mirrored copy of the images is taken, in another order. A copy is recorded
    when it is first used; where even one would not fit into the budget, every batch is queried anew.
    """

    repeats = 1
    """Answers of the device that each released latent is the mean of; the recordings are the same for any number."""

    def __init__(self, oracle: Oracle, images: Images, *, seed: int, device: torch.device) -> None:
        self.oracle, self.images, self.seed, self.device = oracle, images, seed, device
        with torch.random.fork_rng():  # whoever finds these pairs made goes on with the same random numbers
            first = oracle(images[:1].pixels().to(device))
        self.variants = min(VARIANTS, BUDGET // (first.numel() * first.element_size() * len(images)))
        self.recorded: dict[int, tuple[Tensor, Recording]] = {}

    def epoch(self, number: int, batch: int) -> Iterator[tuple[Released, Pictures]]:
        """Every image once in one of its copies, without a last batch that is short."""
        if not self.variants:
            for x, _ in Loader(self.images, batch, device=self.device, augment=AUGMENT, seed=self.seed).epoch(number):
                yield self.oracle(x, self.repeats), x
            return
        x, recording = self.copy(number % self.variants)
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + number)
        order = torch.randperm(len(x), generator=generator).to(self.device)
        for pick in order[: max(batch, len(x) // batch * batch)].split(batch):
            yield recording(pick, self.repeats), x[pick].permute(0, 3, 1, 2).float().div_(255)

    def copy(self, number: int) -> tuple[Tensor, Recording]:
        """The images as they are, or each shifted and mirrored at random, and the device's record of them."""
        if number not in self.recorded:
            x, generator = self.images.x, torch.Generator().manual_seed(self.seed + number)
            if number:
                down, right = torch.randint(-AUGMENT.crop, AUGMENT.crop + 1, (2, len(x)), generator=generator)
                flip = torch.rand(len(x), generator=generator) < 0.5 * AUGMENT.flip
                x = shift_flip(x, torch.arange(len(x)), down, right, flip)
            pixels = (part for part, _ in in_order(Images(x, self.images.y), device=self.device))
            self.recorded[number] = x.to(self.device), self.oracle.record(pixels)
        return self.recorded[number]


def hold_out(public: Images, seed: int, share: float = 0.1) -> tuple[Images, Images]:
    """Split the public images into the attacker's training and validation parts."""
    order = torch.randperm(len(public), generator=torch.Generator().manual_seed(seed))
    held = max(1, round(share * len(public)))
    own, rest = public.divide([order[held:], order[:held]])
    return own, rest


def pairs_of(view: View, images: Images, seed: int) -> Pairs:
    """Pairs of these public images: whoever averages answers shares the recordings of who does not."""
    assert view.oracle is not None, "whoever wants pairs may query"
    oracle, times = (view.oracle.oracle, view.oracle.times) if isinstance(view.oracle, Averaged) else (view.oracle, 1)
    pairs = view.workbook.recording(oracle, seed, lambda: Pairs(oracle, images, seed=seed, device=view.targets.device))
    mine = copy.copy(pairs)
    mine.repeats = times
    return mine


def unchanging(view: View) -> bool:
    if view.resend is None:
        return False
    with torch.random.fork_rng():
        again = view.resend(min(64, len(view.targets)))
    return torch.equal(again, view.targets[: len(again)])
