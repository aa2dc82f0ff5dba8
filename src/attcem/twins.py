"""A run's twin: the same data, network, training, audit and seed without the defence. What it tells is joined here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from attcem.links import as_chain
from attcem.types import Result

MACHINE = {"data.root", "train.device", "train.tensorboard"}
"""Settings that say where a run happens, not what it finds."""

REACHED = 18.0
"""PSNR in dB that the attacks must reach on the undefended twin: below it they could not break anything."""


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings → dotted key → value.

    >>> flat({"noise": {"sigma": 0.1}})
    {'noise.sigma': 0.1}
    """
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        leaves |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return leaves


def surroundings(run: Result) -> dict[str, Any]:
    """All but defence, seed and name; what is off counts as not set, as in results from before the setting existed."""
    config = {key: value for key, value in run.config.items() if key not in {"defence", "seed", "name"}}
    return {key: value for key, value in flat(config).items() if value and key not in MACHINE}


def is_undefended(run: Result) -> bool:
    """Whether nothing stands between encoder and cloud."""
    return not as_chain(run.config.get("defence"))


def find_twins(runs: Sequence[Result]) -> list[Result | None]:
    """For each run the first among them that differs in nothing but having no defence; an undefended one has none."""
    bare = {_all_but_the_defence(run): run for run in reversed(runs) if is_undefended(run)}
    return [None if is_undefended(run) else bare.get(_all_but_the_defence(run)) for run in runs]


def _all_but_the_defence(run: Result) -> str:
    return json.dumps([surroundings(run), run.suite, run.seed], sort_keys=True, default=str)


def with_twins(runs: Sequence[Result]) -> list[Result]:
    """The runs, each with the flags that its twin among them gives rise to."""
    return [
        run if twin is None else replace(run, flags=list(dict.fromkeys([*run.flags, *weak_attacks(twin)])))
        for run, twin in zip(runs, find_twins(runs), strict=True)
    ]


def weak_attacks(twin: Result) -> list[str]:
    """Says when the same suite could not break the same network without defence."""
    reached = float(twin.worst.psnr)
    if not reached < REACHED:
        return []
    return [f"on the undefended twin the attacks reach {reached:.1f} dB, below {REACHED:g}: too weak to judge by"]
