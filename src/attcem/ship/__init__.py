"""Ship: the two halves leave Python, with their audit beside them."""

from attcem.ship.artifact import Artifact, read_artifact
from attcem.ship.exporting import export

__all__ = ["Artifact", "export", "read_artifact"]
