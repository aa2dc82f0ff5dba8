"""Attacks by someone who owns or sees something else: wrappers around any attack, each a function View → View."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch

from attcem.attacks.base import Attack, Reconstruction, seeded
from attcem.attacks.decoder import Decoder, sizes
from attcem.attacks.pairs import Averaged, unchanging
from attcem.types import Released, View


@dataclass(frozen=True)
class Variant(Attack):
    """The wrapped attack on another view."""

    attack: Attack

    @abstractmethod
    def change(self, view: View, seed: int) -> View:
        """What this attacker holds instead, with a page of its own in the workbook."""

    @property
    @abstractmethod
    def condition(self) -> str:
        """What is different, for `attcem list`."""

    @property
    def about(self) -> str:
        return f"{self.condition}: {self.attack.about[0].lower()}{self.attack.about[1:]}"

    @property
    def needs(self) -> frozenset[str]:
        return self.attack.needs

    @property
    def effort(self) -> float:
        return self.attack.effort

    @property
    def observations(self) -> int:
        return self.attack.observations

    @property
    def builds_on(self) -> Variant:
        return replace(self, attack=self.attack.builds_on)

    def __call__(self, view: View, *, seed: int = 0, progress: bool = False) -> Reconstruction:
        return self.attack(self.change(view, seed), seed=seed, progress=progress)

    def recall(self, view: View, found: Reconstruction, *, seed: int = 0) -> None:
        self.attack.recall(self.change(view, seed), found, seed=seed)

    def brief(self) -> Variant:
        return replace(self, attack=self.attack.brief())


@dataclass(frozen=True)
class FewPairs(Variant):
    """Owns only so many of the public images, and so learns from as many pairs."""

    pairs: int

    @property
    def condition(self) -> str:
        return f"With only {self.pairs:,} public images"

    def change(self, view: View, seed: int) -> View:
        """The same few for every seed."""
        some = torch.randperm(len(view.public), generator=torch.Generator().manual_seed(self.pairs))
        page = view.workbook.page((FewPairs, self.pairs), same_images=False)
        return replace(view, public=view.public[some[: self.pairs]], workbook=page)


@dataclass(frozen=True)
class ShiftedPublic(Variant):
    """Owns public images of the first half of the classes only, unlike those it attacks."""

    condition = "With public images of half of the classes"

    def change(self, view: View, seed: int) -> View:
        seen = view.public.y.unique()
        public = view.public[torch.isin(view.public.y, seen[: (len(seen) + 1) // 2])]
        return replace(view, public=public, workbook=view.workbook.page(ShiftedPublic, same_images=False))


@dataclass(frozen=True)
class Repeated(Variant):
    """Averages several sends of every image, and as many answers to every query."""

    times: int

    def __post_init__(self) -> None:
        if self.times < 2:
            raise ValueError(f"{self.times} send is no average: give 2 or more, or the attack itself")

    @property
    def condition(self) -> str:
        return f"With {self.times} sends of every image"

    @property
    def observations(self) -> int:
        return self.times * self.attack.observations

    def change(self, view: View, seed: int) -> View:
        """Averages; where sends are all the same there is nothing new to learn, so the workbook stays."""
        resend, device, oracle = view.resend, view.device, view.oracle
        if resend is None:
            raise ValueError("averaging needs the same images sent again: give the view a resend")
        with seeded(seed):
            again = torch.stack([resend(len(view.targets)) for _ in range(self.times - 1)]).sum(0)
        seen = replace(view, targets=(view.targets + again) / self.times)
        if unchanging(view):
            return seen

        def mean(draw: Callable[[], Released]) -> Released:
            return torch.stack([draw() for _ in range(self.times)]).mean(0)

        return replace(
            seen,
            oracle=oracle and Averaged(oracle, self.times),
            resend=lambda most: mean(lambda: resend(most)),
            device=device and replace(device, release=lambda z: mean(lambda: device.release(z))),
            workbook=view.workbook.page((Repeated, self.times), same_images=True),
        )


def curves(suite: Mapping[str, Attack], mean: Callable[[str], float]) -> dict[str, dict[str, float]]:
    """MSE against how often an image was sent, and against how many public images the attacker owns."""
    repeated = {name: (f"{one.times}", one.attack) for name, one in suite.items() if isinstance(one, Repeated)}
    few = {name: (f"{one.pairs}", one.attack) for name, one in suite.items() if isinstance(one, FewPairs)}
    found = {}
    for option, usual, variants in (("repeats", "1", repeated), ("pairs", "all", few)):
        # One point for each variant, and one for the decoder of their size that is none.
        alike = {(one.channels, one.blocks) for _, one in variants.values() if isinstance(one, Decoder)}
        points = {name: usual for name, one in sizes(suite).items() if (one.channels, one.blocks) in alike}
        points |= {name: point for name, (point, _) in variants.items()}
        found[option] = {points[name]: mean(name) for name in suite if name in points}
    return {option: points for option, points in found.items() if len(points) > 1}
