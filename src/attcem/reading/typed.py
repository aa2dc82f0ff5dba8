"""Plain values become typed ones: what may stand in a file is what the annotations of its class say."""

from __future__ import annotations

import typing
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from attcem.reading.plain import read_json

T = TypeVar("T")

WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false", NoneType: "null"}
ACCEPTED: dict[type, tuple[type, ...]] = {float: (float, int)}
"""A whole number is a number too."""


def read_typed(path: Path, kind: type[T], *, without: tuple[str, ...] = ()) -> T:
    """What a JSON file holds, as a class; `without` are fields that are kept elsewhere."""
    value = read_json(path)
    try:
        return made(kind, value, "its content", without)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def typed(kind: Any, value: Any, where: str) -> Any:
    """The value, if it is what an annotation says; mappings become the classes that are asked for."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin is typing.Annotated:
        return typed(inner[1], value, where)
    if origin in (Union, UnionType):
        return _one_of(inner, value, where)
    if origin is Literal:
        _require(value in inner, where, " or ".join(map(repr, inner)), value)
        return value
    if kind in WORDS:
        fits = isinstance(value, ACCEPTED.get(kind, kind)) and (kind is bool or not isinstance(value, bool))
        _require(fits, where, WORDS[kind], value)
        return value
    if origin is list:
        _require(isinstance(value, list), where, "a list", value)
        return [typed(inner[0], each, f"{where}[{place}]") for place, each in enumerate(value)]
    if origin is dict:
        _require(isinstance(value, dict), where, "a mapping", value)
        return {key: typed(inner[1], each, _inside(where, key)) for key, each in value.items()}
    if hasattr(kind, "from_json"):
        return kind.from_json(typed(typing.get_type_hints(kind.from_json)["data"], value, where))
    return made(kind, value, where)


def made(kind: Any, value: Any, where: str, without: tuple[str, ...] = ()) -> Any:
    """A class from a mapping of its fields; a TypedDict also keeps what it does not know."""
    _require(isinstance(value, dict), where, "a mapping", value)
    own = kind.__dict__.get("__new__")
    hints = typing.get_type_hints(own or kind, include_extras=True)
    fields = {name: hint for name, hint in hints.items() if name not in (*without, "return")}
    found = {name: typed(hint, value[name], _inside(where, name)) for name, hint in fields.items() if name in value}
    if typing.is_typeddict(kind):
        _all_there(kind.__required_keys__, found, where)
        return value
    unknown = [name for name in value if name not in fields]
    if unknown:
        raise ValueError(f"{where} has {unknown[0]!r}, which this version does not know")
    _all_there([name for name in fields if own or not _has_default(kind, name)], found, where)
    return kind(**found)


def _one_of(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    problem = ValueError(where)
    for kind in sorted(kinds, key=lambda kind: kind is not NoneType):
        try:
            return typed(kind, value, where)
        except ValueError as error:
            problem = error
    raise problem


def _has_default(kind: Any, name: str) -> bool:
    field = kind.__dataclass_fields__[name]
    return field.default is not field.default_factory  # both are MISSING


def _all_there(names: typing.Iterable[str], found: dict[str, Any], where: str) -> None:
    missing = [name for name in names if name not in found]
    if missing:
        raise ValueError(f"{where} has no {missing[0]!r}")


def _inside(where: str, name: str) -> str:
    return name if where == "its content" else f"{where}.{name}"


def _require(fits: bool, where: str, wanted: str, value: Any) -> None:
    if not fits:
        raise ValueError(f"{where} must be {wanted}, not {_short(value)}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:56]} ..."
