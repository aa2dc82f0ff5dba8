"""Defences at matched accuracy: repeats make a point, strengths a curve, and a difference comes with its interval."""

from attcem.compare.matched import Comparison, compare
from attcem.compare.rows import Row
from attcem.compare.tables import FORMATS, comparison_tables

__all__ = ["FORMATS", "Comparison", "Row", "compare", "comparison_tables"]
