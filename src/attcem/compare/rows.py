"""One line of the comparison: what the numbers of a defence allow to be said, and what its reader must know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from attcem.compare.comparable import list_differences
from attcem.metrics.stats import Difference
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


@dataclass(frozen=True)
class Contrast:
    """A defence against the reference, over the seeds that both have."""

    seeds: int
    found: Difference
    wilcoxon_p: float


def verdict(scores: Mapping[int, np.ndarray], contrast: Contrast | None, attacker_likes_high: bool) -> str:
    """No more than the interval and both corrected p allow."""
    if not scores:
        return "not reached"
    if contrast is None:
        return "no seed in common with the reference"
    found = contrast.found
    if found.low <= 0 <= found.high or max(found.p, contrast.wilcoxon_p) >= ALPHA:
        return "not significant"
    return "hides less" if (found.mean > 0) == attacker_likes_high else "hides more"


def notes(curve: Curve, reference: Curve, scores: Mapping[int, np.ndarray], contrast: Contrast | None) -> list[str]:
    """What a reader of the line must know."""
    seeds = contrast.seeds if contrast else len(scores)
    unlike = list_differences(reference.settings[0].surroundings, curve.settings[0].surroundings)
    remarks = {
        "one strength only: run more": not scores and len(curve.settings) == 1,
        "1 seed: interval over images only, another training may turn it": seeds == 1,
        f"only {seeds} seeds": 1 < seeds < ENOUGH,
        f"reached by {len(scores)} of {len(curve.lines)} seeds": 0 < len(scores) < len(curve.lines),
        "not every seed has every strength": len({len(runs) for runs in curve.lines.values()}) > 1,
        f"trained differently ({'; '.join(unlike)})": bool(unlike),
    }
    return [remark for remark, holds in remarks.items() if holds]
