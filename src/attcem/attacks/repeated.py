"""An attacker who saw every image sent several times, and averages."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from attcem.attacks.base import seeded
from attcem.attacks.pairs import Averaged, unchanging
from attcem.attacks.variant import Variant
from attcem.types import Latent, Released, View


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

        def resend_mean(most: int) -> Released:
            return torch.stack([resend(most) for _ in range(self.times)]).mean(0)

        def release_mean(z: Latent) -> Released:
            assert device is not None
            return torch.stack([device.release(z) for _ in range(self.times)]).mean(0)

        return replace(
            seen,
            oracle=oracle and Averaged(oracle, self.times),
            resend=resend_mean,
            device=device and replace(device, release=release_mean),
            workbook=view.workbook.page((Repeated, self.times), same_images=True),
        )
