"""Numbers as a reader wants them: sensible digits, and a dash for what was not measured."""

import math
from collections.abc import Callable, Sequence
from typing import TypeGuard

import numpy as np

MISSING = "–"
SPACE = "\N{NO-BREAK SPACE}"


def _or_dash(show: Callable[[float], str]) -> Callable[[float | None], str]:
    """Let a format answer a dash to what is missing or not finite."""

    def shown(value: float | None) -> str:
        return show(float(value)) if is_number(value) else MISSING

    shown.__doc__ = show.__doc__
    return shown


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number, and not a switch."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(value)


@_or_dash
def small(value: float) -> str:
    """An error such as MSE: four decimals, or scientific below 1e-4."""
    return f"{value:.1e}" if 0 < abs(value) < 1e-4 else f"{value:.4f}"


@_or_dash
def scientific(value: float) -> str:
    """A number of any size, three digits."""
    return f"{value:.3g}"


@_or_dash
def ratio(value: float) -> str:
    """A share between 0 and 1, as three decimals."""
    return f"{value:.3f}"


@_or_dash
def decibel(value: float) -> str:
    """PSNR, one decimal."""
    return f"{value:.1f}"


@_or_dash
def percent(value: float) -> str:
    """A share as a whole percentage."""
    return f"{100 * value:.0f}{SPACE}%"


@_or_dash
def share(value: float) -> str:
    """A share as a percentage with one decimal."""
    return f"{100 * value:.1f}{SPACE}%"


@_or_dash
def count(value: float) -> str:
    """A whole number in groups of three digits."""
    return f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def mean(values: Sequence[float]) -> float:
    """The mean of the finite values; NaN when there are none."""
    finite = [float(value) for value in values if is_number(value)]
    return sum(finite) / len(finite) if finite else math.nan


def spread(values: Sequence[float]) -> float:
    """The sample standard deviation of the finite values; NaN below two."""
    finite = [float(value) for value in values if is_number(value)]
    return float(np.std(finite, ddof=1)) if len(finite) > 1 else math.nan


def mean_and_spread(values: Sequence[float], show: Callable[[float | None], str]) -> str:
    """The mean, and ± the deviation where there is one."""
    deviation = spread(values)
    return show(mean(values)) + (f" ± {show(deviation)}" if is_number(deviation) else "")


def amount(step: str) -> float:
    """How much a step of an attacker's effort is; "all" is the most."""
    try:
        return float(step)
    except ValueError:
        return math.inf
