"""Plain values become typed ones: what may stand in a file is what the annotations of its class say."""

import dataclasses
import inspect
import typing
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

T = TypeVar("T")

ROOT = "its content"
WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false", NoneType: "null"}


def from_plain(kind: type[T], value: Any, path: Path, *, without: tuple[str, ...] = ()) -> T:
    """What a file holds, as a class; `without` are fields that are kept elsewhere, the path is for the error."""
    try:
        return made(kind, value, ROOT, without) if without else typed(kind, value, ROOT)
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
        accepted = (float, int) if kind is float else kind
        fits = isinstance(value, accepted) and (kind is bool or not isinstance(value, bool))
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
    fields = {name: field for name, field in _fields(kind).items() if name not in without}
    read = {name: typed(hint, value[name], _inside(where, name)) for name, (hint, _) in fields.items() if name in value}
    if missing := [name for name, (_, needed) in fields.items() if needed and name not in read]:
        raise ValueError(f"{where} has no {missing[0]!r}")
    if typing.is_typeddict(kind):
        return value
    if unknown := [name for name in value if name not in fields]:
        raise ValueError(f"{where} has {unknown[0]!r}, which this version does not know")
    return kind(**read)


@cache
def _fields(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Name → its annotation, and whether it must be there; those of the constructor where nothing else is declared."""
    if typing.is_typeddict(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        return {name: (hint, name in kind.__required_keys__) for name, hint in hints.items()}
    parameters = inspect.signature(kind).parameters.values()
    owner = kind if dataclasses.is_dataclass(kind) else kind.__new__
    hints = typing.get_type_hints(owner, include_extras=True)
    return {each.name: (hints[each.name], each.default is each.empty) for each in parameters}


def _one_of(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    problem = ValueError(where)
    for kind in sorted(kinds, key=lambda kind: kind is not NoneType):
        try:
            return typed(kind, value, where)
        except ValueError as error:
            problem = error
    raise problem


def _inside(where: str, name: str) -> str:
    return name if where == ROOT else f"{where}.{name}"


def _require(fits: bool, where: str, wanted: str, value: Any) -> None:
    if not fits:
        text = repr(value)
        raise ValueError(f"{where} must be {wanted}, not {text if len(text) < 60 else f'{text[:56]} ...'}")
