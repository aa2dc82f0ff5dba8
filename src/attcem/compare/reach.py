"""Where a curve can be read: between its runs, never beyond them, each seed on a line of its own."""

from typing import NamedTuple

import numpy as np

from attcem.metrics.stats import area_under, interpolate
from attcem.runs import Curve

NEAR = 5e-5  # an accuracy typed with four digits means the run that is printed so


class Span(NamedTuple):
    """From the lowest accuracy to the highest; empty where low > high."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.4f}–{self.high:.4f}" if self.low < self.high else f"{self.low:.4f}"


def span_of(curve: Curve) -> Span:
    """The accuracies that the lines of all seeds reach."""
    accuracies = [[run.accuracy for run in runs] for runs in curve.lines.values()]
    return Span(max(map(min, accuracies)), min(map(max, accuracies)))


def describe_reach(curve: Curve) -> str:
    span = span_of(curve)
    if span.low <= span.high:
        return str(span) if span.low < span.high else f"only {span}"
    return "only one strength: run more" if len(curve.settings) == 1 else "its seeds have no accuracy in common"


def common_span(curves: list[Curve]) -> Span | None:
    """The accuracies that all curves with more than one point span."""
    spans = [span for span in map(span_of, curves) if span.low < span.high]
    common = Span(max((span.low for span in spans), default=1.0), min((span.high for span in spans), default=0.0))
    return common if common.low < common.high else None


def line(curve: Curve, seed: int, key: str) -> tuple[np.ndarray, np.ndarray]:
    """One seed's accuracies, and the scores of every image at each: those under a key such as `worst/mse`."""
    runs = curve.lines[seed]
    scores = np.stack([run.per_image[key] for run in runs]).astype(np.float64)
    return np.array([run.accuracy for run in runs], dtype=np.float64), scores


def scores_at(curve: Curve, accuracy: float, key: str) -> dict[int, np.ndarray]:
    """The scores of every image at this accuracy, for each seed whose line reaches it."""
    found = {}
    for seed in curve.lines:
        accuracies, scores = line(curve, seed, key)
        nearest = float(np.clip(accuracy, accuracies.min(), accuracies.max()))
        reached = interpolate(nearest, accuracies, scores)
        if reached is not None and abs(nearest - accuracy) <= NEAR:
            found[seed] = reached
    return found


def areas(curve: Curve, span: Span, key: str) -> list[float]:
    """The mean score along a span, of each seed; none unless the lines of all seeds cover it."""
    own = span_of(curve)
    if not own.low <= span.low < span.high <= own.high:
        return []
    lines = (line(curve, seed, key) for seed in curve.lines)
    return [area_under(accuracies, scores.mean(1), *span) for accuracies, scores in lines]
