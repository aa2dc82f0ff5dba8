"""How a network was trained, as far as its results repeat it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Record:
    """What training leaves behind for the audit: a row of `history` and the vectors of `diagnostics` for each epoch."""

    seed: int
    history: list[dict[str, float]] = field(default_factory=list)
    diagnostics: list[dict[str, list[float]]] = field(default_factory=list)
    surrogate_only: dict[str, float] = field(default_factory=dict)
    """Link → how far its penalty fell when only its own parameters learned."""
    cost: dict[str, float] = field(default_factory=dict)
    defence: list[dict[str, Any]] | None = None
    """What it was trained under, as a configuration describes it; nothing where nobody knows."""
    config: dict[str, Any] = field(default_factory=dict)
    """The settings of the training, a TrainConfig."""
