"""The gate of a build: thresholds that audits must keep, with confidence, or the build fails."""

from attcem.check.judge import Verdict, check
from attcem.check.records import junit, to_json
from attcem.check.rules import Rules

__all__ = ["Rules", "Verdict", "check", "junit", "to_json"]
