"""Which pictures a gallery shows: by how much they leak, never by hand."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from attcem.language import phrase
from attcem.runs.leak import per_attack, worst_per_image
from attcem.types import Result

ENDS = 3  # so many pictures from either end, and from the middle


def places_of(run: Result) -> list[int]:
    """Which attacked images the run kept pictures of."""
    return run.shown or list(range(len(run.gallery.get("original", ()))))


def closest(run: Result) -> dict[int, tuple[str, np.ndarray]]:
    """Attacked image → the attack that came closest, and its picture; without those whose picture was not kept."""
    tried = per_attack(run, "mse")
    if "worst" not in run.gallery:  # an older result keeps the first few pictures of every attack instead
        tried = {name: values for name, values in tried.items() if name in run.gallery}
    if not tried:
        return {}
    names, scores, found = list(tried), np.stack(list(tried.values())), {}
    scores = np.where(np.isfinite(scores), scores, np.inf)
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


def choose(numbers: Iterable[int], labels: Mapping[int, str], judges: Sequence[Result], rows: int) -> dict[int, str]:
    """Attacked image → why it is shown ("" for the sake of its class), most leaking first.

    The ends and the middle of all pictures by leak, their mean rank over the judges; then those of each class, as many
    as there are rows for.
    """
    numbers = sorted(numbers)
    scores = [worst_per_image(run)[numbers] for run in judges]
    ranks = [np.argsort(np.argsort(values, kind="stable"), kind="stable") for values in scores]
    order = [numbers[i] for i in np.argsort(np.sum(ranks, axis=0), kind="stable")]
    chosen = _ends(order, ENDS)
    for each in range(1, ENDS + 1):
        for label in dict.fromkeys(labels.values()):
            for number in _ends([number for number in order if labels.get(number) == label], each):
                if len(chosen) < rows:
                    chosen.setdefault(number, "")
    return {number: chosen[number] for number in order if number in chosen}


def _ends(order: list[int], each: int) -> dict[int, str]:
    middle = max(0, (len(order) - each) // 2)
    parts = {
        phrase("leaks least"): order[-each:],
        phrase("median"): order[middle : middle + each],
        phrase("leaks most"): order[:each],
    }
    return {number: why for why, numbers in parts.items() for number in numbers}
