"""Numbers that remember their spread."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np


class Summary(float):
    """A mean that remembers its spread: it prints and computes as the mean."""

    p05: float
    p95: float
    n: int

    def __new__(cls, mean: float, p05: float, p95: float, n: int) -> Summary:
        """Build from the four numbers that a result file keeps."""
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
        """The four numbers by name."""
        return {"mean": float(self), "p05": self.p05, "p95": self.p95, "n": self.n}


@dataclass(frozen=True)
class Scores:
    """How well one attack did, each metric summarised over the attacked images."""

    mse: Summary
    psnr: Summary
    ssim: Summary
    recon_acc: Summary
    reid_top1: Summary
    more: dict[str, Summary] = field(default_factory=dict)
    """Metrics that not every result has, by name."""

    def to_json(self) -> dict[str, dict[str, float]]:
        """Metric → mean, p05, p95, n."""
        return {name: summary.to_json() for name, summary in self.named().items()}

    def named(self) -> dict[str, Summary]:
        """Every metric by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "more"} | self.more

    @classmethod
    def of(cls, found: dict[str, Summary]) -> Scores:
        """The five that every result has, and whatever else was measured."""
        always = {f.name for f in dataclasses.fields(cls)} - {"more"}
        missing = sorted(always - found.keys())
        if missing:
            raise ValueError(f"scores lack {', '.join(missing)}")
        more = {name: summary for name, summary in found.items() if name not in always}
        return cls(**{name: found[name] for name in always}, more=more)

    @classmethod
    def from_json(cls, data: dict[str, Summary]) -> Scores:
        """The inverse of `to_json`, once the summaries are read."""
        return cls.of(data)
