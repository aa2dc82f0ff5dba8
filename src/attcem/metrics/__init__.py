"""Scores: per image first, summaries after."""

from attcem.metrics.alignment import aligned
from attcem.metrics.evaluator import Evaluator
from attcem.metrics.image import METRICS, Metric, reidentified

__all__ = ["METRICS", "Evaluator", "Metric", "aligned", "reidentified"]
