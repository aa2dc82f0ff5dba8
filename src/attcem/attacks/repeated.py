"""An attacker who saw every image sent several times, and averages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from attcem.attacks.base import seeded
from attcem.attacks.pairs import Averaged, unchanging
from attcem.attacks.variant import Variant
from attcem.types import Released, View


@dataclass(frozen=True)
class Repeated(Variant):
    """Averages several sends of every image, and as many answers to every query."""

    times: int

    def __post_init__(self) -> None:
        if self.times < 2:
            raise ValueError(f"{self.times} send is no average: give 2 or more, or the attack itself")

    @property
    def condition(self) -> str:
        """How often."""
        return f"With {self.times} sends of every image"

    @property
    def observations(self) -> int:
        """As many as it averages."""
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
