"""The report: reads results, writes one HTML page that a stranger and a researcher can both read."""

from attcem.report.load import load_results
from attcem.report.page import render, write_report

__all__ = ["load_results", "render", "write_report"]
