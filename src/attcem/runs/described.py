"""How often all that the attribute probe says of a picture is right."""

import math

from attcem.runs.numbers import is_number
from attcem.types import Result

PROBE, METRIC = "attributes", "all_right"
PER_IMAGE = f"probe {PROBE}/{METRIC}"  # its key among the scores of every image


def described(run: Result, by: str = "mean") -> float:
    """The share of pictures, or that by chance; NaN where nobody asked."""
    found = run.probes.get(PROBE, {}).get(METRIC, {})
    value = found.get(by) if isinstance(found, dict) else None
    return float(value) if is_number(value) else math.nan
