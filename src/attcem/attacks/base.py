"""What an attack is: a value called with a View that returns its guess of every attacked image."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

from attcem.types import View


@dataclass(frozen=True)
class Reconstruction:
    """Guessed images in [0,1], one per target; `curve` is the attacker's own validation loss, `warnings` its doubts."""

    images: Float[Tensor, "n c h w"]
    curve: list[float] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class Attack(ABC):
    """An attack holds its settings and nothing about the victim."""

    @abstractmethod
    def __call__(self, view: View, *, seed: int = 0, progress: bool = False) -> Reconstruction:
        """Reconstruct the images behind `view.targets`."""
