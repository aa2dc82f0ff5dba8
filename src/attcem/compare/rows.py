"""One line of the comparison: the numbers of a defence, the verdict they allow, and what its reader must know."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from attcem.compare.comparable import list_differences
from attcem.runs import Curve

ALPHA = 0.05
ENOUGH = 3
"""Fewer seeds than this are called few."""


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
    low: float
    high: float
    p: float
    wilcoxon_p: float


def verdict(scores: Mapping[int, np.ndarray], contrast: Contrast, attacker_likes_high: bool) -> str:
    """No more than the interval and both corrected p allow."""
    if not scores:
        return "outside its range"
    if not contrast.seeds:
        return "no seed in common with the reference"
    if contrast.low <= 0 <= contrast.high or max(contrast.p, contrast.wilcoxon_p) >= ALPHA:
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
