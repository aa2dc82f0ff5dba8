"""The report: reads results, writes one HTML page that a stranger and a researcher can both read."""

from attcem.report.page import render, write_report

__all__ = ["render", "write_report"]
