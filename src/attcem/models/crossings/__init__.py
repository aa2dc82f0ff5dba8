"""The table of crossings: a new one is its file and its line here."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from attcem.models.crossings.attention import Attention, Slot
from attcem.models.crossings.base import Crossing
from attcem.models.crossings.insert import insert
from attcem.models.crossings.map import Map
from attcem.models.crossings.pool import Pool, Vector
from attcem.naming import check_options, look_up

__all__ = ["CROSSINGS", "Crossing", "Map", "describe_crossing", "insert", "read_crossing"]

CROSSINGS: dict[str, type[Crossing]] = {
    "map": Map,
    "pool": Pool,
    "vector": Vector,
    "attention": Attention,
    "slot": Slot,
}


def read_crossing(written: Crossing | Mapping[str, Any] | str | None) -> Crossing | None:
    """What a user may write: nothing, a name, {name: options}, or the thing itself."""
    if written is None or isinstance(written, Crossing):
        return written
    given = {written: {}} if isinstance(written, str) else written
    if not isinstance(given, Mapping) or len(given) != 1:
        raise ValueError(f"crossing cannot be {written!r}: give one form with its options, as in {{pool: {{size: 2}}}}")
    ((name, options),) = given.items()
    kind = look_up("crossing", name, CROSSINGS)
    check_options(f"crossing {name!r}", options or {}, [option.name for option in fields(kind)])
    return kind(**(options or {}))


def describe_crossing(crossing: Crossing | None) -> dict[str, Any] | None:
    """The mapping that `read_crossing` makes it from."""
    if crossing is None:
        return None
    name = next(name for name, kind in CROSSINGS.items() if kind is type(crossing))
    return {name: asdict(crossing)}
