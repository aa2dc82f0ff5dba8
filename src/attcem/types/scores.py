"""Numbers that remember their spread, and tables that one room has finished and another shows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

OVER_FREE: dict[str, Callable[[float, float], float]] = {
    "mse": lambda mse, free: mse / free if free > 0 else math.nan,
    "psnr": lambda psnr, free: psnr - free,
}
"""Metric → its value over that of the free attack, the mean image: the same on every data set and range of pixels."""


class Summary(float):
    """A mean that remembers its spread: it prints and computes as the mean."""

    p05: float
    p95: float
    n: int

    def __new__(cls, mean: float, p05: float, p95: float, n: int) -> Summary:
        self = super().__new__(cls, mean)
        self.p05, self.p95, self.n = float(p05), float(p95), int(n)
        return self

    @classmethod
    def of(cls, values: np.ndarray) -> Summary:
        """Summarise one value per image; an image that was not attacked has none (NaN)."""
        values = values[~np.isnan(values)]
        p05, p95 = np.percentile(values, [5, 95])
        return cls(float(np.mean(values)), p05, p95, len(values))

    def to_json(self) -> dict[str, float]:
        return {"mean": float(self), "p05": self.p05, "p95": self.p95, "n": self.n}


@dataclass(frozen=True)
class Scores:
    """How well one attack did, each metric summarised over the attacked images."""

    mse: Summary
    psnr: Summary
    ssim: Summary
    recon_acc: Summary
    reid_top1: Summary
    more: dict[str, Summary] = field(default_factory=dict)  # metrics that not every result has, by name

    def to_json(self) -> dict[str, dict[str, float]]:
        return {name: summary.to_json() for name, summary in self.named().items()}

    def named(self) -> dict[str, Summary]:
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "more"} | self.more

    @classmethod
    def of(cls, data: dict[str, Summary]) -> Scores:
        """The five that every result has, and whatever else was measured."""
        always = {f.name for f in dataclasses.fields(cls)} - {"more"}
        if missing := sorted(always - data.keys()):
            raise ValueError(f"scores lack {', '.join(missing)}")
        more = {name: summary for name, summary in data.items() if name not in always}
        return cls(**{name: data[name] for name in always}, more=more)

    from_json = of  # of summaries that are read already


@dataclass(frozen=True)
class Line:
    """Cells as they are printed, the first is the name; `runs` are the places of its results among those compared."""

    cells: tuple[str, ...]
    runs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Table:
    """What is compared, what a reader must know of it, and its lines; no lines where the notes say why."""

    title: str
    notes: tuple[str, ...]
    heading: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
