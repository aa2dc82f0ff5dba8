"""The chain of one run, link by link, as its configuration describes it: what stands where, and its equation."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from inspect import getdoc
from typing import Any, NamedTuple

from attcem.defences import DEFENCES, Defence, create_defence
from attcem.links import Link, read_links
from attcem.models import CROSSINGS
from attcem.runs.config import strengths
from attcem.runs.names import with_symbol
from attcem.types import Result


class Place(Enum):
    """Where a link acts."""

    ENCODER = "encoder"
    CROSSING = "crossing"
    RELEASE = "release"
    TRAINING = "training"


class Step(NamedTuple):
    """One link: its name with its strength, where it acts, its equation, and the sentence it is listed with."""

    name: str
    place: Place
    equation: str = ""
    about: str = ""


def steps(run: Result) -> list[Step]:
    """What crosses the cut, then the links of the defence in the order in which they release."""
    shown = strengths(run)
    links = [(link, made(link)) for link in read_links(run.config.get("defence"))]
    links.sort(key=lambda pair: pair[1].stage if pair[1] else 0)
    return [*crossing(run), *(step(link, defence, shown) for link, defence in links)]


def crossing(run: Result) -> list[Step]:
    """The form in which the latent leaves; a bottleneck is a map."""
    model = run.config.get("model") or {}
    written: Mapping[str, Any] = model.get("crossing") or (
        {"map": model["bottleneck"]} if model.get("bottleneck") else {}
    )
    found = []
    for form, options in written.items():
        given = options if isinstance(options, Mapping) else {"channels": options}
        shown = [
            f"{key}={value}"
            for key, value in given.items()
            if key in ("channels", "tokens", "width", "size", "condense") and value
        ]
        kind = CROSSINGS.get(form)
        about = first_line(kind) if kind else ""
        found.append(Step(" ".join([form, *shown]), Place.CROSSING, kind.equation if kind else "", about))
    return found


def step(link: Link, defence: Defence | None, shown: set[str]) -> Step:
    strength = [with_symbol(key, value) for key, value in link.options.items() if f"{link.name}.{key}" in shown]
    name = " ".join([link.name, *strength])
    if defence is None:
        return Step(name, Place.TRAINING)
    return Step(name, place_of(type(defence)), defence.equation, first_line(DEFENCES[link.kind]))


def made(link: Link) -> Defence | None:
    """The link itself; none where it is somebody's own, or has options of another version."""
    try:
        return create_defence(link.kind, **link.options)
    except ValueError:
        return None


def place_of(kind: type[Defence]) -> Place:
    if kind.release is not Defence.release:
        return Place.RELEASE
    return Place.TRAINING if kind.penalty is not Defence.penalty else Place.ENCODER


def first_line(kind: type) -> str:
    """What it is listed with."""
    return (getdoc(kind) or "").partition("\n")[0]
