"""Pieces of an SVG: pure functions from numbers to markup."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from attcem.report.numbers import is_number

Span = tuple[float, float]


@dataclass(frozen=True)
class Frame:
    """A plotting area: where data coordinates fall on the paper."""

    x: Span
    y: Span
    width: int
    height: int
    left: int = 44
    right: int = 12
    top: int = 26
    bottom: int = 36

    def across(self, x: float) -> float:
        """Data x → paper."""
        low, high = self.x
        return self.left + (x - low) / (high - low) * (self.width - self.left - self.right)

    def up(self, y: float) -> float:
        """Data y → paper."""
        low, high = self.y
        return self.height - self.bottom - (y - low) / (high - low) * (self.height - self.top - self.bottom)


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers, 1-2-5 steps, that enclose a span.

    >>> ticks(0.03, 0.87)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    if not high > low:
        pad = abs(low) * 0.1 or 1.0
        low, high = low - pad, high + pad
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(nice * power for nice in (1, 2, 5, 10) if nice * power >= rough * 0.7)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def span(values: Iterable[float | None]) -> Span | None:
    """Lowest and highest finite value."""
    finite = [float(value) for value in values if is_number(value)]
    return (min(finite), max(finite)) if finite else None


def tag(name: str, content: object = "", **attributes: object) -> Markup:
    """One SVG element, everything in it escaped; `class_` and `text_anchor` become class and text-anchor."""
    written = Markup("").join(
        Markup(' {}="{}"').format(
            key.rstrip("_").replace("_", "-"), f"{value:.1f}" if isinstance(value, float) else value
        )
        for key, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(escape(name)), written, content)


def axes(
    frame: Frame, x_ticks: Sequence[float], y_ticks: Sequence[float], x_label: str, y_label: str = ""
) -> list[Markup]:
    """Grid lines, tick labels and the names of the axes."""
    base, edge = frame.height - frame.bottom, frame.width - frame.right
    parts = []
    for y in y_ticks:
        at = frame.up(y)
        parts.append(tag("line", class_="grid", x1=frame.left, x2=edge, y1=at, y2=at))
        parts.append(tag("text", f"{y:g}", class_="tick", x=frame.left - 6, y=at + 4, text_anchor="end"))
    for x in x_ticks:
        parts.append(tag("text", f"{x:g}", class_="tick", x=frame.across(x), y=base + 15, text_anchor="middle"))
    parts.append(tag("line", class_="axis", x1=frame.left, x2=edge, y1=base, y2=base))
    parts.append(tag("text", x_label, class_="name", x=edge, y=base + 30, text_anchor="end"))
    if y_label:
        parts.append(tag("text", y_label, class_="name", x=frame.left - 38, y=frame.top - 6))
    return parts
