"""Two pictures of all runs at once: accuracy against leak, and how the leak spreads over images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from attcem.report.charts import Frame, axes, drawing, span, tag, ticks
from attcem.report.numbers import is_number

WIDTH = 480
LETTER = 6.8
"""Width of one letter of a label on paper, about."""


@dataclass(frozen=True)
class Point:
    """One run: its MSE, its accuracy, its name ("" for none) and how it is drawn."""

    x: float
    y: float
    name: str
    style: str


Box = tuple[float, float, float, float]


def scatter(title: str, points: Sequence[Point], marks: Mapping[str, float]) -> Markup:
    """Accuracy over MSE, with a vertical line per mark (the MSE that a baseline gets for free)."""
    drawn = [point for point in points if is_number(point.x) and is_number(point.y)]
    if not drawn:
        return Markup("")
    lines = {name: x for name, x in marks.items() if is_number(x)}
    x_ticks = ticks(0, (span([*(point.x for point in drawn), *lines.values()]) or (0, 1))[1])
    y_ticks = ticks(*(span(point.y for point in drawn) or (0, 1)))
    frame = Frame((x_ticks[0], x_ticks[-1]), (y_ticks[0], y_ticks[-1]), WIDTH, 330, top=64, right=18)
    parts = axes(frame, x_ticks, y_ticks, "worst-case MSE: further right hides more →", "accuracy ↑")
    taken: list[Box] = [_disc(frame, point) for point in drawn]
    for row, (name, x) in enumerate(sorted(lines.items(), key=lambda item: item[1])):
        parts += _mark(frame, name, x, frame.top - 4 - 13 * (len(lines) - 1 - row))
    for point in drawn:
        parts.append(SHAPES[point.style](frame.across(point.x), frame.up(point.y), point))
    for point in drawn:
        parts += _label(frame, point, taken)
    return drawing(frame, title, parts)


def _mark(frame: Frame, name: str, x: float, y: float) -> list[Markup]:
    at = frame.across(x)
    near_edge = at + 8 + LETTER * len(name) > frame.width
    line = tag("line", class_="mark", x1=at, x2=at, y1=y - 8, y2=frame.height - frame.bottom)
    anchor, shift = ("end", -4.0) if near_edge else ("start", 4.0)
    return [line, tag("text", name, class_="name", x=at + shift, y=y, text_anchor=anchor)]


def _square(x: float, y: float, point: Point) -> Markup:
    return tag("rect", tag("title", point.name), class_="point open-door", x=x - 5, y=y - 5, width=10, height=10)


def _circle(x: float, y: float, point: Point) -> Markup:
    return tag("circle", tag("title", point.name), class_="point guarded", cx=x, cy=y, r=5.5)


def _cross(x: float, y: float, point: Point) -> Markup:
    path = f"M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10"
    return tag("path", tag("title", point.name), class_="point broken", d=path)


SHAPES = {"undefended": _square, "defended": _circle, "collapsed": _cross}


def _disc(frame: Frame, point: Point) -> Box:
    x, y = frame.across(point.x), frame.up(point.y)
    return x - 6, y - 6, x + 6, y + 6


def _label(frame: Frame, point: Point, taken: list[Box]) -> list[Markup]:
    """The name beside its point, at the first place that is free; none is better than a heap."""
    x, y, long = frame.across(point.x), frame.up(point.y), LETTER * len(point.name)
    beside = ((x + 10, y + 4), (x - 10 - long, y + 4))
    over, under = y - 11, y + 20
    places = (
        *beside,
        (x - long / 2, over),
        (x - long / 2, under),
        (x - 5, over),
        (x - 5, under),
        (x + 5 - long, under),
        (x - 5, under + 14),
    )
    for left, base in places if point.name else ():
        box = (left, base - 11, left + long, base + 3)
        inside = (
            box[0] >= frame.left - 2 and box[2] <= frame.width and frame.top - 14 < base < frame.height - frame.bottom
        )
        if inside and not any(_overlap(box, other) for other in taken):
            taken.append(box)
            return [tag("text", point.name, class_="label", x=left, y=base)]
    return []


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def ridges(title: str, rows: Sequence[tuple[str, np.ndarray]], mark: float, bins: int = 48) -> Markup:
    """A histogram per run of one value per image, above one another on a common axis, each with its mean."""
    kept = [(name, values[np.isfinite(values)]) for name, values in rows]
    kept = [(name, values) for name, values in kept if len(values)]
    if not kept:
        return Markup("")
    top = max(max(float(np.quantile(values, 0.99)) for _, values in kept), mark if is_number(mark) else 0.0)
    x_ticks = ticks(0, top)
    band = 46
    frame = Frame((x_ticks[0], x_ticks[-1]), (0, 1), WIDTH, 44 + band * len(kept) + 40, left=14, top=44, right=18)
    parts = axes(frame, x_ticks, [], "worst-case MSE of one picture →")
    if is_number(mark):
        parts += _mark(frame, "mean image", mark, frame.top - 8.0)
    edges = np.linspace(x_ticks[0], x_ticks[-1], bins + 1)
    for row, (name, values) in enumerate(kept):
        base = frame.top + band * (row + 1) - 4.0
        heights, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
        tall = (band - 20) * heights / heights.max()
        steps = "".join(f"V{base - h:.1f}H{frame.across(right):.1f}" for h, right in zip(tall, edges[1:], strict=True))
        parts.append(tag("path", class_="ridge", d=f"M{frame.across(edges[0]):.1f} {base:.1f}{steps}V{base:.1f}Z"))
        at = frame.across(min(float(values.mean()), x_ticks[-1]))
        parts.append(tag("line", class_="mean", x1=at, x2=at, y1=base - band + 22, y2=base))
        parts.append(
            tag("text", name, class_="label", x=frame.width - frame.right, y=base - band + 18, text_anchor="end")
        )
    return drawing(frame, title, parts)
