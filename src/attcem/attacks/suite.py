"""A suite: attacks with the effort it allows them, and all else that an audit asks, under a version that tells it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from attcem.attacks.base import Attack, Probe
from attcem.attacks.digest import digest
from attcem.naming import check_name

RECIPE = 1
"""How the evaluator is made: another number for another recipe, and those made by an older one are not used."""


@dataclass(frozen=True)
class Suite:
    """Everything that decides what an audit asks of a run; change any of it, and raise the number."""

    name: str
    number: int
    attacks: Mapping[str, Attack]
    """Name → the attack at the effort that it is allowed."""
    probes: Mapping[str, Probe] = field(default_factory=dict)
    theory: bool = False
    """Whether it also says what theory promises."""
    yardstick: Attack | None = None
    """Asks at every stage where the protection comes from; without it nobody asks."""
    seen: int = 160_000
    """Images that the evaluator is shown while it learns: fewer where there is no time for more."""

    @property
    def version(self) -> str:
        """As `standard-3+3f9a2c1b`: results are compared only where all of it agrees."""
        return f"{self.name}-{self.number}+{digest(self)}"

    def beside(self, attacks: Mapping[str, Any]) -> Suite:
        """The same suite with further attacks; its version tells."""
        if not isinstance(attacks, Mapping):
            raise ValueError(f"attacks is a {type(attacks).__name__}: name each attack, as in {{'mine': MyAttack()}}")
        for name, attack in attacks.items():
            check_name(name)
            if name in self.attacks:
                raise ValueError(f"the suite {self.name} has an attack called {name!r}: call yours otherwise")
            if not isinstance(attack, Attack):
                raise ValueError(f"{name!r} is {attack!r}, no attack: give an instance of an attcem.Attack")
        return replace(self, attacks={**self.attacks, **attacks})
