"""Which pictures a gallery shows: by how much they leak, never by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from attcem.report.risk import worst_per_image
from attcem.types import Result

ENDS = 3
"""So many pictures from either end, and from the middle."""
WHY = {"most": "leaks most", "median": "median", "least": "leaks least"}


@dataclass(frozen=True)
class Choice:
    """One attacked image, as its place in `per_image`, and why it is shown ("" for the sake of its class)."""

    number: int
    why: str


def places_of(run: Result) -> list[int]:
    """Which attacked images the run kept pictures of."""
    return run.shown or list(range(len(run.gallery.get("original", ()))))


def closest(run: Result) -> dict[int, tuple[str, np.ndarray]]:
    """Attacked image → the attack that came closest, and its picture; without those whose picture was not kept."""
    names = [name for name in run.attacks if name not in run.repeated and f"{name}/mse" in run.per_image]
    if "worst" not in run.gallery:  # an older result keeps the first few pictures of every attack instead
        names = [name for name in names if name in run.gallery]
    if not names:
        return {}
    scores = np.stack([np.asarray(run.per_image[f"{name}/mse"], float) for name in names])
    scores = np.where(np.isfinite(scores), scores, np.inf)
    found = {}
    for at, number in enumerate(places_of(run)):
        if number < scores.shape[1] and np.isfinite(scores[:, number]).any():
            name = names[int(scores[:, number].argmin())]
            pictures = run.gallery.get("worst", run.gallery.get(name, ()))
            if at < len(pictures):
                found[number] = (name, pictures[at])
    return found


def labelled(run: Result) -> dict[int, str]:
    """Attacked image → its class, of those whose pictures were kept."""
    return dict(zip(places_of(run), run.labels, strict=False))


def choose(numbers: Iterable[int], labels: Mapping[int, str], judges: Sequence[Result], rows: int) -> list[Choice]:
    """The ends and the middle of all pictures by leak, then those of each class, as many as there are rows for.

    Pictures are ordered by their mean rank over the judges, most leaking first.
    """
    order = _by_leak(sorted(numbers), judges)
    chosen = {choice.number: choice for choice in _ends(order, ENDS)}
    for each in range(1, ENDS + 1):
        for label in dict.fromkeys(labels.values()):
            for choice in _ends([number for number in order if labels.get(number) == label], each):
                if len(chosen) < rows:
                    chosen.setdefault(choice.number, Choice(choice.number, ""))
    return [chosen[number] for number in order if number in chosen]


def _by_leak(numbers: list[int], runs: Sequence[Result]) -> list[int]:
    """Most leaking first."""
    scores = [worst_per_image(run) for run in runs]
    ranks = [np.argsort(np.argsort(values[numbers], kind="stable"), kind="stable") for values in scores]
    return [numbers[i] for i in np.argsort(np.sum(ranks, axis=0), kind="stable")]


def _ends(order: list[int], each: int) -> list[Choice]:
    middle = max(0, (len(order) - each) // 2)
    parts = {"most": order[:each], "median": order[middle : middle + each], "least": order[-each:]}
    found: dict[int, Choice] = {}
    for part, numbers in parts.items():
        for number in numbers:
            found.setdefault(number, Choice(number, WHY[part]))
    return list(found.values())
