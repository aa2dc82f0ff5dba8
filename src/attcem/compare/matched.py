"""The comparison: every defence at one accuracy, and its difference from a reference with interval and p."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from attcem.compare.comparable import check_comparable
from attcem.compare.drop import Drop, drop_at
from attcem.compare.reach import Span, areas, common_span, describe_reach, scores_at, span_of
from attcem.compare.rows import Contrast, Row, notes, summarise_flags, verdict
from attcem.metrics import METRICS
from attcem.metrics.stats import bootstrap_interval, holm, paired_bootstrap, wilcoxon_signed_rank
from attcem.naming import look_up
from attcem.runs import Curve, curves_of, with_twins
from attcem.runs.config import links
from attcem.runs.names import UNDEFENDED
from attcem.runs.numbers import mean, spread
from attcem.types import Result

NOTHING = Contrast(0, *[math.nan] * 5)


@dataclass(frozen=True)
class Comparison:
    """All defences at one accuracy, against one of them; p are corrected for the number of comparisons."""

    flags: tuple[str, ...]
    metric: str
    accuracy: float
    free: float  # the mean image's score, which anyone has without a latent; NaN where it was not measured
    chosen: str
    reference: str
    area_span: Span | None
    rows: tuple[Row, ...]
    members: Mapping[str, tuple[int, ...]]  # defence → the places of its runs among those given
    drops: Mapping[str, Drop] = field(default_factory=dict)  # of the defences that have undefended twins


def compare(
    runs: Sequence[Result],
    *,
    metric: str = "mse",
    at_accuracy: float | None = None,
    against: str | None = None,
    draws: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Match the defences of these runs in accuracy and test each against the reference.

    Scores between two strengths lie on the straight line between them, never beyond the last one; `against` is plain
    noise, or else the first defence, if not given. `draws` and `seed` are those of the bootstrap.
    """
    look_up("metric", metric, METRICS)
    if at_accuracy is not None and not 0 <= at_accuracy <= 1:
        raise ValueError(f"an accuracy lies between 0 and 1, not at {at_accuracy}: type --at-accuracy 0.85, say")
    runs = with_twins(runs)
    if runs:
        check_comparable(runs, metric)
    curves = curves_of(runs)
    if len(curves) < 2:
        found = ", ".join(curve.name for curve in curves) or UNDEFENDED
        raise ValueError(f"a comparison needs two defences, here is only {found}: add runs of another")
    noise = next((curve for curve in curves if list(links(curve.runs[0])) == ["noise"]), curves[0])
    by_name = {curve.chain: curve for curve in curves} | {curve.name: curve for curve in curves}
    reference = noise if against is None else look_up("defence", against, by_name)
    accuracy, chosen = matched_accuracy(curves) if at_accuracy is None else (at_accuracy, "as asked")
    scores = {curve.name: scores_at(curve, accuracy, f"worst/{metric}") for curve in curves}
    if not scores[reference.name]:
        raise ValueError(
            f"accuracy {accuracy:.4f} is outside the range of {reference.name} ({describe_reach(reference)}): "
            "choose another with --at-accuracy, or another defence with --against"
        )
    others = [curve.name for curve in curves if curve is not reference]
    contrasts = _corrected({name: _contrast(scores[name], scores[reference.name], draws, seed) for name in others})
    span = common_span(curves)
    rows = [
        _row(curve, reference, metric, scores[curve.name], contrasts.get(curve.name, NOTHING), span, (draws, seed))
        for curve in curves
    ]
    places = {id(run): place for place, run in enumerate(runs)}
    members = {curve.name: tuple(sorted(places[id(run)] for run in curve.runs)) for curve in curves}
    owners = {id(run): curve.name for curve in curves for run in curve.runs}
    flags = summarise_flags((owners.get(id(run), UNDEFENDED), run.flags) for run in runs)
    guesses = [run.baselines["mean_image"].named() for run in runs if "mean_image" in run.baselines]
    free = mean([guess[metric] for guess in guesses if metric in guess])
    drops = {c.name: drop for c in curves if (drop := drop_at(c, accuracy, draws=draws, seed=seed))}
    return Comparison(flags, metric, accuracy, free, chosen, reference.name, span, tuple(rows), members, drops)


def matched_accuracy(curves: Sequence[Curve]) -> tuple[float, str]:
    """The highest accuracy at which all curves can be read with the defence on, and in words how it was chosen.

    Without a defence all curves meet in one point, where there is nothing to compare.
    """
    low, high = max(span_of(curve).low for curve in curves), min(span_of(curve).high for curve in curves)
    if low > high:
        spans = ", ".join(f"{curve.name} {describe_reach(curve)}" for curve in curves)
        raise ValueError(
            f"the accuracy ranges do not overlap ({spans}): run more strengths, "
            "or choose an accuracy with --at-accuracy and see the defences that cover it"
        )
    highest = min(max(run.accuracy for run in c.runs if run.seed == seed) for c in curves for seed in c.lines)
    if highest >= low:
        return highest, "the highest accuracy that every defence reaches"
    return low, (
        "the lowest accuracy that every defence covers (some values are interpolated between the weakest setting and "
        "no defence)"
    )


def _contrast(ours: Mapping[int, np.ndarray], theirs: Mapping[int, np.ndarray], draws: int, seed: int) -> Contrast:
    shared = sorted(ours.keys() & theirs.keys())
    if not shared:
        return NOTHING
    here, there = (np.stack([scores[one] for one in shared]) for scores in (ours, theirs))
    found = paired_bootstrap(here, there, draws=draws, seed=seed)
    wilcoxon_p = wilcoxon_signed_rank((here - there).mean(0))
    return Contrast(len(shared), found.mean, found.low, found.high, found.p, wilcoxon_p)


def _corrected(contrasts: Mapping[str, Contrast]) -> dict[str, Contrast]:
    tested = {name: contrast for name, contrast in contrasts.items() if contrast.seeds}
    ps, wilcoxon_ps = (holm([getattr(each, kind) for each in tested.values()]) for kind in ("p", "wilcoxon_p"))
    return {
        name: contrast._replace(p=p, wilcoxon_p=wilcoxon_p)
        for (name, contrast), p, wilcoxon_p in zip(tested.items(), ps, wilcoxon_ps, strict=True)
    }


def _row(
    curve: Curve,
    reference: Curve,
    metric: str,
    scores: Mapping[int, np.ndarray],
    contrast: Contrast,
    span: Span | None,
    bootstrap: tuple[int, int],
) -> Row:
    draws, seed = bootstrap
    table = np.stack(list(scores.values())) if scores else np.empty((0, 1))
    levels, along = table.mean(1), areas(curve, span, f"worst/{metric}") if span else []
    tested = contrast._asdict() | {"seeds": len(curve.lines)}  # all of its own, not only those it shares
    low, high = bootstrap_interval(table, draws=draws, seed=seed) if scores else (math.nan, math.nan)
    return Row(
        defence=curve.name,
        strengths=len(curve.settings),
        spans=str(own) if (own := span_of(curve)).low <= own.high else "",
        mean=mean(levels),
        std=spread(levels),
        low=low,
        high=high,
        **tested,
        area=mean(along),
        area_std=spread(along),
        flagged=any(run.flags for runs in curve.lines.values() for run in runs),
        verdict="reference" if curve is reference else verdict(scores, contrast, METRICS[metric].higher_is_better),
        notes=tuple(notes(curve, reference, scores, contrast)),
    )
