"""Which runs can be compared: those that attacked the same pictures of the same task in the same way."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attcem.runs.config import beside_maps, crossing, differences, flattened, surroundings
from attcem.runs.names import name_run, show_value
from attcem.types import Result


def question(run: Result) -> dict[str, Any]:
    """What must agree: data, network, audit with the version of its suite, or the attacks of a suite without one."""
    asked = {key: value for key, value in surroundings(run).items() if key.split(".")[0] in ("data", "model", "audit")}
    return asked | ({} if run.suite else {"attacks": ", ".join(sorted(run.attacks))})


def list_differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    unlike = differences(ours, theirs)
    return [f"{key}: {' and '.join(show_value(key, value) for value in both)}" for key, both in unlike.items()]


def check_comparable(runs: Sequence[Result], metric: str) -> None:
    first, key = runs[0], f"worst/{metric}"
    for place, run in enumerate(runs, 1):
        scores = run.per_image.get(key)
        if scores is None or not np.isfinite(scores).all():
            has = f"no per-image scores {key!r}" if scores is None else f"scores {key!r} that are not finite"
            raise ValueError(f"{name_run(run)} has {has}: audit it again, `attcem audit RUN`")
        asked = question(first), question(run)
        if crossing(first) or crossing(run):
            asked = beside_maps(asked[0]), beside_maps(asked[1])
        unlike = list_differences(*asked) or _other_pictures(first, run, key)
        if unlike:
            one, two = name_run(first), name_run(run)
            if one == two:
                one, two = f"{one} ({first.folder or 'result 1'})", f"{two} ({run.folder or f'result {place}'})"
            suite = flattened(first.config).get("audit.suite", "standard")
            fixed = any(name.startswith(("data.", "model.")) for name in differences(*asked))
            again = f", or audit them again, alike: `attcem audit RUN --suite {suite}`"
            raise ValueError(
                f"not comparable: {one} and {two} differ in {'; '.join(unlike)}. "
                f"Name only runs of one data set, network and audit{'' if fixed else again}"
            )


def _other_pictures(run: Result, other: Result, key: str) -> list[str]:
    """What betrays other pictures: their number, or a mean image that misses them by another distance."""
    ours, theirs = len(run.per_image[key]), len(other.per_image[key])
    if ours != theirs:
        return [f"attacked images: {ours} and {theirs}"]
    missed = [each.per_image["mean_image/mse"] for each in (run, other) if "mean_image/mse" in each.per_image]
    alike = len(missed) < 2 or np.allclose(missed[0], missed[1], rtol=1e-3, atol=1e-6)
    return [] if alike else ["the pictures that were attacked"]
