"""The places at which a backbone can be cut, and what can cross at each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from attcem.config import Experiment
from attcem.configfile import UsageError, usage_errors
from attcem.experiment import run_folder
from attcem.models import BACKBONES, CROSSINGS, build_split, read_crossing
from attcem.models.named import named_spec
from attcem.parts import load
from attcem.reading.settings import parse_yaml
from attcem.runs.names import short
from attcem.sweep.grid import Run

PLAIN = "plain"  # what crosses is the map itself
FORMS = (PLAIN, *CROSSINGS)


class Place(NamedTuple):
    """A cut after so many units, the last of them by its name, and the form of what crosses there."""

    cut: int
    unit: str
    form: str
    crossing: dict[str, Any] | None

    @property
    def name(self) -> str:
        """As in `cut 4, pool`."""
        return f"cut {self.cut}, {self.form}"

    def of(self, experiment: Experiment) -> Experiment:
        """The same experiment, cut here."""
        chosen: dict[str, Any] = {"cut": self.cut, "bottleneck": None, "crossing": self.crossing}
        return replace(experiment, model=replace(experiment.model, **chosen))

    def runs(self, experiment: Experiment, seeds: Sequence[int]) -> list[Run]:
        """A run for each seed."""
        each = [replace(self.of(experiment), seed=seed) for seed in seeds]
        return [Run(run_folder(one), one, f"{self.name}, seed {one.seed}") for one in each]


def places_of(
    experiment: Experiment, forms: Sequence[str] = FORMS, cuts: Sequence[int] | None = None
) -> tuple[list[Place], list[str]]:
    """Every cut with every form that fits there, in the order of the network; and what does not fit, with the cause.

    A form is `plain`, the name of a crossing, or a crossing with its options as YAML: `{pool: {size: 2}}`.
    """
    data, model = load(experiment), experiment.model
    crossings = dict(map(read_form, forms))
    places, misfits = [], []
    with torch.device("meta"):
        units = [name for name, _ in BACKBONES[model.backbone](data.shape, data.classes, model.width).named_children()]
    if wrong := [cut for cut in cuts or () if not 1 <= cut < len(units)]:
        raise UsageError(f"cut {wrong[0]} does not exist in {model.backbone!r}: choose from 1 to {len(units) - 1}")
    for cut in sorted(set(cuts)) if cuts else range(1, len(units)):
        for form, crossing in crossings.items():
            place = Place(cut, units[cut - 1], form, crossing)
            if why := misfit(place.of(experiment), data.shape, data.classes):
                misfits.append(f"{place.name}: left out, {why}")
            else:
                places.append(place)
    return places, misfits


def read_form(text: str) -> tuple[str, dict[str, Any] | None]:
    """How a form is called, and what builds it.

    >>> read_form("plain"), read_form("pool")
    (('plain', None), ('pool', {'pool': {}}))
    >>> read_form("{pool: {size: 2, cloud: backbone}}")
    ('pool size=2 cloud=backbone', {'pool': {'size': 2, 'cloud': 'backbone'}})
    """
    if text == PLAIN:
        return PLAIN, None
    with usage_errors():
        written = parse_yaml(text)
        if read_crossing(written) is None:
            raise UsageError(f"a form cannot be {text!r}: give {PLAIN}, or a name of `attcem list crossings`")
    ((name, options),) = ({written: {}} if isinstance(written, str) else written).items()
    options = options or {}
    return " ".join([name, *(f"{key}={short(value)}" for key, value in options.items())]), {name: options}


def misfit(experiment: Experiment, shape: Sequence[int], classes: int) -> str | None:
    """Why a network cannot be built like this; it is tried without taking memory for it."""
    model = experiment.model
    spec: dict[str, Any] = {"cut": model.cut, "crossing": model.crossing, "width": model.width}
    try:
        with torch.device("meta"):
            build_split(named_spec(model.backbone, shape=shape, classes=classes, activation=model.activation, **spec))
    except (ValueError, RuntimeError) as error:
        return next(iter(str(error).splitlines()), repr(error))
    return None
