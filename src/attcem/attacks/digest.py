"""A digest of what decides what an attack does: its settings, and the constants of the modules that it is made of."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from typing import Any

from attcem.attacks.base import Attack, Probe


def digest(value: Any) -> str:
    """Eight digits that any change of a setting or constant changes, the same on every machine.

    >>> digest((1, 0.1)) == digest([1, 0.1]) != digest([1, 0.2])
    True
    """
    told = json.dumps([described(value), constants(map(type, objects(value)))], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:8]


def described(value: Any) -> Any:
    """A value as JSON writes it: numbers and words as they are, an object as its class and settings."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): described(inner) for key, inner in value.items()}
    if isinstance(value, Set):
        return sorted(map(described, value))
    if isinstance(value, Sequence):
        return list(map(described, value))
    if has_settings(type(value)):
        return {"class": type(value).__qualname__} | described(settings(value))
    raise ValueError(
        f"no digest can be made of {value!r}: let an attack hold numbers, words, and tuples or dataclasses of them"
    )


def has_settings(kind: type) -> bool:
    """Whether objects of a class are told by their settings."""
    return is_dataclass(kind) or issubclass(kind, Attack | Probe)


def settings(value: Any) -> dict[str, Any]:
    """Name → setting of a dataclass; all attributes of an attack that is none."""
    return {field.name: getattr(value, field.name) for field in fields(value)} if is_dataclass(value) else vars(value)


def objects(value: Any) -> Iterator[Any]:
    """An object and those among its settings, at any depth."""
    inner: Iterable[Any] = ()
    if isinstance(value, Mapping):
        inner = value.values()
    elif isinstance(value, Sequence | Set) and not isinstance(value, str):
        inner = value
    elif has_settings(type(value)):
        yield value
        inner = settings(value).values()
    for one in inner:
        yield from objects(one)


def constants(classes: Iterable[type]) -> dict[str, Any]:
    """`module.NAME` → value of the plain constants in the modules behind some classes."""
    found = {}
    for module in modules_behind(classes):
        for name, value in vars(sys.modules[module]).items():
            if name.isupper() and is_plain(value):
                found[f"{module.rpartition('.')[2]}.{name}"] = described(value)
    return found


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
    """Whether a constant is a number, a word, or several of them."""
    several = isinstance(value, tuple | frozenset)
    return all(map(is_plain, value)) if several else isinstance(value, str | int | float)
