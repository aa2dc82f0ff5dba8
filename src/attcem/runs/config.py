"""The settings of a run as dotted keys: the options of its defence, and everything around it."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from attcem.links import flattened, read_links
from attcem.runs.numbers import is_number
from attcem.types import Result

T = TypeVar("T")

MACHINE = {"data.root", "train.device", "train.tensorboard"}  # settings that say where a run happens, not what it finds


PLAIN = {"channels", "stride", "kernel"}  # options of a map that only reduces channels


def crossing(run: Result) -> dict[str, dict[str, Any]]:
    """What crosses the cut, read like a link of the defence: it hides, too. A plain map is the usual bottleneck."""
    written = (run.config.get("model") or {}).get("crossing") or {}
    forms = {form: chosen or {} for form, chosen in written.items()}
    return {f"{form} crossing": chosen for form, chosen in forms.items() if form != "map" or set(chosen) - PLAIN}


def links(run: Result) -> dict[str, dict[str, Any]]:
    """Name of a link → its options that are set; empty for no defence."""
    chain = crossing(run) | {link.name: link.options for link in read_links(run.config.get("defence"))}
    return {
        link: {key: value for key, value in flattened(own).items() if value not in (None, {})}
        for link, own in chain.items()
    }


def options(run: Result) -> dict[str, Any]:
    return {f"{link}.{key}": value for link, own in links(run).items() for key, value in own.items()}


def numbers(run: Result) -> dict[str, float]:
    return {key: value for key, value in options(run).items() if is_number(value)}


def words(run: Result) -> dict[str, Any]:
    """Those that are not: words, and switches that are on."""
    return {key: value for key, value in options(run).items() if not is_number(value) and value is not False}


def strengths(run: Result) -> set[str]:
    """The option of each link that sets how hard it protects: as recorded, `lam`, `condense`, or its first number."""
    found = set()
    for link, own in links(run).items():
        first = next((key for key, value in own.items() if is_number(value)), None)
        known = (key for key in (run.strengths.get(link), "lam", "condense", first) if key in own)
        found |= {f"{link}.{key}" for key in list(known)[:1]}
    return found


def surroundings(run: Result) -> dict[str, Any]:
    """All but defence, crossing, seed and name, with the suite's version for its name, and the threat model.

    What is off counts as not set, as in results from before the setting existed.
    """
    config = {key: value for key, value in run.config.items() if key not in {"defence", "seed", "name"}}
    asked = ({"audit.suite": run.suite} if run.suite else {}) | {"audit.threat": run.threat}
    if crossing(run):
        config["model"] = {key: value for key, value in config["model"].items() if key != "crossing"}
    return {key: value for key, value in (flattened(config) | asked).items() if value and key not in MACHINE}


def beside_maps(settings: Mapping[str, Any]) -> dict[str, Any]:
    """All but the map at the cut: what a run with another crossing shares with those that it is compared with."""
    return {
        key: value for key, value in settings.items() if not key.startswith(("model.crossing.", "model.bottleneck."))
    }


def differing(ours: Mapping[str, Any], others: Collection[Mapping[str, Any]]) -> list[str]:
    """Our keys whose value is another, or missing, elsewhere."""
    return [key for key in ours if any(ours[key] != theirs.get(key) for theirs in others)]


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {key: (ours.get(key), theirs.get(key)) for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)}


def grouped(items: Iterable[T], key: Callable[[T], Any]) -> list[list[T]]:
    """Items whose keys are alike together, in order of appearance."""
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(json.dumps(key(item), sort_keys=True, default=str), []).append(item)
    return list(groups.values())
