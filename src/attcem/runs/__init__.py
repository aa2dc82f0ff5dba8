"""Results: read once, grouped by settings, seeds and strength, and named; compare, report and figures stand on it."""

from attcem.runs.curves import Curve, curves_of
from attcem.runs.read import Runs, read_runs
from attcem.runs.settings import Setting, settings_of
from attcem.runs.twins import find_twins, with_twins

__all__ = ["Curve", "Runs", "Setting", "curves_of", "find_twins", "read_runs", "settings_of", "with_twins"]
