"""Scores: per image first, summaries after."""

from attcem.metrics.image import METRICS, Metric, reidentified

__all__ = ["METRICS", "Metric", "reidentified"]
