"""Numbers as a reader wants them: sensible digits, and a dash for what was not measured."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

MISSING = "–"
SPACE = "\N{NO-BREAK SPACE}"
Show = Callable[[float | None], str]


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number, and not a switch."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(value)


def _shown_as(form: Callable[[float], str]) -> Show:
    return lambda value: form(float(value)) if is_number(value) else MISSING


small = _shown_as(lambda value: f"{value:.1e}" if 0 < abs(value) < 1e-4 else f"{value:.4f}")
scientific = _shown_as(lambda value: f"{value:.3g}")
ratio = _shown_as(lambda value: f"{value:.3f}")
decibel = _shown_as(lambda value: f"{value:.1f}")
gain = _shown_as(lambda value: f"{value:+.1f}")
percent = _shown_as(lambda value: f"{100 * value:.0f}{SPACE}%")
share = _shown_as(lambda value: f"{100 * value:.1f}{SPACE}%")
count = _shown_as(lambda value: f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}"))


def mean(values: Sequence[float]) -> float:
    """The mean of the finite values; NaN when there are none."""
    finite = [float(value) for value in values if is_number(value)]
    return sum(finite) / len(finite) if finite else math.nan


def spread(values: Sequence[float]) -> float:
    """The sample standard deviation of the finite values; NaN below two."""
    finite = [float(value) for value in values if is_number(value)]
    return float(np.std(finite, ddof=1)) if len(finite) > 1 else math.nan


def plus_minus(values: Sequence[float], show: Show) -> str:
    deviation = spread(values)
    return f"± {show(deviation)}" if is_number(deviation) else ""


def mean_and_spread(values: Sequence[float], show: Show) -> str:
    return f"{show(mean(values))} {plus_minus(values, show)}".rstrip(" ")


def map_numbers(tree: Any, change: Callable[[float], Any]) -> Any:
    if isinstance(tree, Mapping):
        return {key: map_numbers(inner, change) for key, inner in tree.items()}
    if isinstance(tree, list | tuple):
        return [map_numbers(inner, change) for inner in tree]
    return change(float(tree)) if isinstance(tree, float | np.number) else tree


def amount(step: str) -> float:
    """How much a step of an attacker's effort is; "all" is the most."""
    try:
        return float(step)
    except ValueError:
        return math.inf
