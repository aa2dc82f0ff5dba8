"""An attack by someone who owns or sees something else: a wrapper around any attack, a function View → View."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

from attcem.attacks.base import Attack, Reconstruction
from attcem.types import View


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
        """One line for `attcem list`."""
        return f"{self.condition}: {self.attack.about[0].lower()}{self.attack.about[1:]}"

    @property
    def needs(self) -> frozenset[str]:
        """What the wrapped attack needs."""
        return self.attack.needs

    @property
    def effort(self) -> float:
        """That of the wrapped attack."""
        return self.attack.effort

    @property
    def observations(self) -> int:
        """As many as the wrapped attack needs."""
        return self.attack.observations

    @property
    def builds_on(self) -> Variant:
        """What the wrapped attack builds on, by the same attacker."""
        return replace(self, attack=self.attack.builds_on)

    def __call__(self, view: View, *, seed: int = 0, progress: bool = False) -> Reconstruction:
        """Run the wrapped attack on what this attacker holds."""
        return self.attack(self.change(view, seed), seed=seed, progress=progress)

    def recall(self, view: View, found: Reconstruction, *, seed: int = 0) -> None:
        """Keep what it found before on its own page of the workbook."""
        self.attack.recall(self.change(view, seed), found, seed=seed)

    def brief(self) -> Variant:
        """The wrapped attack with an effort of seconds."""
        return replace(self, attack=self.attack.brief())
