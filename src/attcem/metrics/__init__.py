"""Scores: per image first, summaries after."""

from attcem.metrics.evaluator import Evaluator
from attcem.metrics.image import METRICS, Metric, aligned, reidentified

__all__ = ["METRICS", "Evaluator", "Metric", "aligned", "reidentified"]
