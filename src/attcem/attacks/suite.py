"""A suite: attacks with the effort it allows them, and all else that an audit asks, under a version that tells it."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from attcem.attacks.base import Attack, Probe
from attcem.naming import check_name

RECIPE = 1  # how the evaluator is made: another number for another recipe, and those made by an older one are not used
RENAMED = {"same_picture": "reidentify", "SamePicture": "Reidentify"}
"""Today's name → the one that versions were made with: a new name alone asks nothing else."""


@dataclass(frozen=True)
class Suite:
    """Everything that decides what an audit asks of a run; change any of it, and raise the number."""

    name: str
    number: int
    attacks: Mapping[str, Attack]  # name → the attack at the effort that it is allowed
    probes: Mapping[str, Probe] = field(default_factory=dict)
    theory: bool = False  # whether it also says what theory promises
    yardstick: Attack | None = None  # asks at every stage where the protection comes from; without it nobody asks
    seen: int = 160_000  # images that the evaluator is shown while it learns: fewer where there is no time for more

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


def digest(value: Any) -> str:
    """Eight digits that any change of a setting or constant changes, the same on every machine.

    >>> digest((1, 0.1)) == digest([1, 0.1]) != digest([1, 0.2])
    True
    """
    constants = {
        f"{first_name(module.rpartition('.')[2])}.{name}": described(constant)
        for module in modules_behind(map(type, objects(value)))
        for name, constant in vars(sys.modules[module]).items()
        if name.isupper() and is_plain(constant)
    }
    return hashlib.sha256(json.dumps([described(value), constants], sort_keys=True).encode()).hexdigest()[:8]


def described(value: Any) -> Any:
    """A value as JSON writes it: numbers and words as they are, an object as its class and settings."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {first_name(str(key)): described(inner) for key, inner in value.items()}
    if isinstance(value, Set):
        return sorted(map(described, value))
    if isinstance(value, Sequence):
        return list(map(described, value))
    if has_settings(type(value)):
        return {"class": first_name(type(value).__qualname__)} | described(settings(value))
    raise ValueError(
        f"no digest can be made of {value!r}: let an attack hold numbers, words, and tuples or dataclasses of them"
    )


def first_name(name: str) -> str:
    return RENAMED.get(name, name)


def has_settings(kind: type) -> bool:
    return is_dataclass(kind) or issubclass(kind, Attack | Probe)


def settings(value: Any) -> dict[str, Any]:
    """Name → setting of a dataclass; all attributes of an attack that is none."""
    return {one.name: getattr(value, one.name) for one in fields(value)} if is_dataclass(value) else vars(value)


def objects(value: Any) -> Iterator[Any]:
    """An object and those among its settings, at any depth."""
    if has_settings(type(value)):
        yield value
        value = settings(value)
    if isinstance(value, Mapping | Sequence | Set) and not isinstance(value, str):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from objects(inner)


def modules_behind(classes: Iterable[type]) -> set[str]:
    """The modules that define classes and their bases, and those of the same package that they import from.

    A class that was typed into a prompt has none.
    """
    waiting = {base.__module__ for one in classes for base in one.__mro__ if has_settings(base)} & sys.modules.keys()
    found: set[str] = set()
    while waiting:
        module = waiting.pop()
        found.add(module)
        package = module.rpartition(".")[0]
        origins = {getattr(value, "__module__", None) or "" for value in vars(sys.modules[module]).values()}
        waiting |= {name for name in origins if package and name.startswith(f"{package}.")} - found
    return found


def is_plain(value: Any) -> bool:
    return all(map(is_plain, value)) if isinstance(value, tuple | frozenset) else isinstance(value, str | int | float)
