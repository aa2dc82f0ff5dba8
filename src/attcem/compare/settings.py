"""What runs were told to do: which are repeats, which are strengths of one defence, which cannot be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from attcem.links import read_links
from attcem.twins import flat, surroundings
from attcem.types import Result

SAME = ("data", "model", "audit")
"""Parts of a configuration that must agree, or the runs answer different questions."""
UNDEFENDED = "no defence"


def question(run: Result) -> dict[str, Any]:
    """What must agree before runs are compared: data, network, audit and the version of its suite."""
    asked = {key: value for key, value in surroundings(run).items() if key.split(".")[0] in SAME}
    return asked | {"attacks": run.suite or ", ".join(sorted(run.attacks))}


def training(run: Result) -> dict[str, Any]:
    """What may differ between two curves, but not within one."""
    return {key: value for key, value in surroundings(run).items() if key.split(".")[0] not in SAME}


def links(run: Result) -> dict[str, Mapping[str, Any]]:
    """Name of a link → its options; empty for no defence."""
    return {link.name: link.options for link in read_links(run.config.get("defence"))}


def is_number(value: Any) -> bool:
    """Whether an option is a number, and not a switch."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def numbers(run: Result) -> dict[str, float]:
    """The chain's numeric options by dotted name."""
    return {key: value for key, value in flat(links(run)).items() if is_number(value)}


def chain(run: Result, shown: Iterable[str] = ()) -> str:
    """The defence as `noise + bound(assign=slot)`: its words and switches, and the numbers that are asked for."""
    named = []
    for name, options in links(run).items():
        own = [
            f"{key}={value:g}" if is_number(value) else f"{key}={value}"
            for key, value in flat(options).items()
            if f"{name}.{key}" in shown or not (is_number(value) or value in (None, False))
        ]
        named.append(f"{name}({', '.join(own)})" if own else name)
    return " + ".join(named) or UNDEFENDED


def label(run: Result) -> str:
    """One run, for an error message."""
    return f"{chain(run, numbers(run))}, seed {run.seed}"


def differing(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """What differs, as "key: one and the other"."""
    keys = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
    return [f"{key}: {ours.get(key)} and {theirs.get(key)}" for key in keys]


def check_comparable(runs: Sequence[Result], metric: str) -> None:
    """Refuse runs that did not attack the same pictures of the same task in the same way."""
    first, key = runs[0], f"worst/{metric}"
    for run in runs:
        if key not in run.per_image:
            raise ValueError(f"{label(run)} has no per-image scores {key!r}: audit it again, `attcem audit RUN`")
        if not np.isfinite(run.per_image[key]).all():
            raise ValueError(f"{label(run)} has scores {key!r} that are not finite: audit it again, `attcem audit RUN`")
        unlike = differing(question(first), question(run)) or _other_pictures(first, run, key)
        if unlike:
            raise ValueError(
                f"not comparable: {label(first)} and {label(run)} differ in {'; '.join(unlike)}. "
                "Name only runs of one data set, network and audit, or audit them again, alike: "
                f"`attcem audit RUN --suite {surroundings(first).get('audit.suite', 'standard')}`"
            )


def _other_pictures(run: Result, other: Result, key: str) -> list[str]:
    """What betrays other pictures: their number, or a mean image that misses them by another distance."""
    ours, theirs = len(run.per_image[key]), len(other.per_image[key])
    if ours != theirs:
        return [f"attacked images: {ours} and {theirs}"]
    mark = "mean_image/mse"
    if mark in run.per_image and mark in other.per_image:
        alike = np.allclose(run.per_image[mark], other.per_image[mark], rtol=1e-3, atol=1e-6)
        return [] if alike else ["the pictures that were attacked"]
    return []
