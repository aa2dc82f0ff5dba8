"""One line of the comparison: the numbers of a defence, the verdict they allow, and what a reader must know."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from attcem.compare.comparable import list_differences
from attcem.runs import Curve

ALPHA = 0.05
ENOUGH = 3  # fewer seeds than this are called few
NUMBER = re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?!\w)")
"""A number by itself: that of a name, as in `decoder_repeat_16` or `noise-2`, is part of the name."""


@dataclass(frozen=True)
class Row:
    """One defence at the matched accuracy; NaN where there is nothing to say."""

    defence: str
    strengths: int
    seeds: int
    spans: str
    mean: float
    std: float
    low: float
    high: float
    difference: float
    difference_low: float
    difference_high: float
    p: float
    wilcoxon_p: float
    area: float
    area_std: float
    flagged: bool
    verdict: str
    notes: tuple[str, ...]


class Contrast(NamedTuple):
    """A defence against the reference, over the seeds that both have; NaN where there are none."""

    seeds: int
    difference: float
    difference_low: float
    difference_high: float
    p: float
    wilcoxon_p: float


def verdict(scores: Mapping[int, np.ndarray], contrast: Contrast, attacker_likes_high: bool) -> str:
    """No more than the interval and both corrected p allow."""
    if not scores:
        return "outside its range"
    if not contrast.seeds:
        return "no seed in common with the reference"
    if contrast.difference_low <= 0 <= contrast.difference_high or max(contrast.p, contrast.wilcoxon_p) >= ALPHA:
        return "not significant"
    return "hides less" if (contrast.difference > 0) == attacker_likes_high else "hides more"


def notes(curve: Curve, reference: Curve, scores: Mapping[int, np.ndarray], contrast: Contrast) -> list[str]:
    seeds = contrast.seeds or len(scores)
    unlike = list_differences(reference.settings[0].surroundings, curve.settings[0].surroundings)
    remarks = {
        "only one strength: run more": not scores and len(curve.settings) == 1,
        "only one seed: another training may reverse this result": seeds == 1,
        f"only {seeds} seeds": 1 < seeds < ENOUGH,
        f"in the range of {len(scores)} of {len(curve.lines)} seeds": 0 < len(scores) < len(curve.lines),
        "not every seed has every strength": len(set(Counter(run.seed for run in curve.runs).values())) > 1,
        f"trained differently ({'; '.join(unlike)})": bool(unlike),
    }
    return [remark for remark, holds in remarks.items() if holds]


def summarise_flags(runs: Iterable[tuple[str, Iterable[str]]]) -> tuple[str, ...]:
    """Every flag once, with whom it concerns; `runs` are names of defences, each with the flags of one of its runs.

    >>> summarise_flags([("noise", ["large gains 9%"]), ("noise", ["large gains 13%"]), ("gmm", [])])
    ('large gains 9–13% (noise: 2 of 2 runs)',)
    """
    runs = list(runs)
    total = Counter(owner for owner, _ in runs)
    return tuple(
        f"{flag} ({', '.join(f'{owner}: {times} of {total[owner]} runs' for owner, times in owners.items())})"
        for flag, owners in merge_flags(runs)
    )


def merge_flags(runs: Iterable[tuple[str, Iterable[str]]]) -> list[tuple[str, Counter[str]]]:
    """Every flag once, with how many runs of each owner it concerns."""
    raised: dict[str, tuple[list[str], Counter[str]]] = {}
    for owner, flags in runs:
        wordings = {flag: NUMBER.sub("0", flag) for flag in flags}
        for flag, wording in wordings.items():
            raised.setdefault(wording, ([], Counter()))[0].append(flag)
        for wording in set(wordings.values()):
            raised[wording][1][owner] += 1
    return [(span(flags), owners) for flags, owners in raised.values()]


def span(flags: Sequence[str]) -> str:
    """One flag for several of one wording: each number becomes the lowest and the highest.

    >>> span(["1 of 2 clients above 0.5", "2 of 2 clients above 0.5"])
    '1–2 of 2 clients above 0.5'
    """
    columns = zip(*map(NUMBER.findall, flags), strict=True)
    ends = iter([sorted(set(column), key=float)[:: max(1, len(set(column)) - 1)] for column in columns])
    return NUMBER.sub(lambda _: "–".join(next(ends)), flags[0])
