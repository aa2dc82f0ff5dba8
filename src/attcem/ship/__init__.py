"""Ship: the two halves leave Python, with their audit beside them."""

from attcem.ship.artifact import Artifact, read_artifact
from attcem.ship.budget import Budget, OverBudget
from attcem.ship.delivery import Unreachable
from attcem.ship.device import Device, Prediction
from attcem.ship.exporting import export

__all__ = ["Artifact", "Budget", "Device", "OverBudget", "Prediction", "Unreachable", "export", "read_artifact"]
