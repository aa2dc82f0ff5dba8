"""Charts as plain data for plotly.js: what is drawn, in which words, and the same numbers as a table."""

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from attcem.runs import Setting
from attcem.runs.numbers import is_number, map_numbers

Trace = dict[str, Any]
COLOURS = 8
SYMBOLS = ("circle", "diamond", "triangle-up", "pentagon", "star", "hexagon", "triangle-down", "hourglass")


class Grid(NamedTuple):
    """The numbers behind a chart, ready to print."""

    heading: Sequence[str]
    lines: Sequence[Sequence[str]]
    words: int = 1  # how many of the first columns hold no numbers


@dataclass(frozen=True)
class Drawing:
    """Traces and layout; a colour is the name of one in the style sheet, as "@c0", so that it can follow the theme."""

    traces: list[Trace]
    layout: dict[str, Any] = field(default_factory=dict)


class Chart(NamedTuple):
    """A figure: one drawing, or several by name of which a reader picks one."""

    title: str
    note: str
    drawings: Mapping[str, Drawing]
    table: Grid
    height: int = 320

    def data(self) -> dict[str, Any]:
        """What the page's script draws: numbers with five digits, null for what is not finite."""
        drawings = {name: vars(drawing) for name, drawing in self.drawings.items()}
        return map_numbers(drawings, lambda value: float(f"{value:.5g}") if is_number(value) else None)


def words(text: object) -> str:
    """A text that plotly.js shows as it stands: it reads tags and entities, nothing else of ours is a tag."""
    return html.escape(str(text), quote=False)


def colour(place: int | None) -> str:
    """A colour of the style sheet, the same for the same place on every chart; nowhere is no defence."""
    return "@ink" if place is None else f"@c{place % COLOURS}"


def coloured(settings: Sequence[Setting]) -> list[tuple[Setting, int | None]]:
    defended = [setting for setting in settings if not setting.undefended]
    return [(s, None if s.undefended else defended.index(s)) for s in settings]


def points(name: str, xs: Sequence[Any], ys: Sequence[Any], place: int | None, **more: Any) -> Trace:
    symbol = "square" if place is None else SYMBOLS[(place + place // COLOURS) % len(SYMBOLS)]
    marker = {"color": colour(place), "symbol": symbol} | more.pop("marker", {})
    trace = {"type": "scatter", "mode": "markers", "name": words(name), "x": list(xs), "y": list(ys)}
    return trace | {"marker": marker} | more


def curve(name: str, xs: Iterable[Any], ys: Iterable[Any], place: int | None, **more: Any) -> Trace:
    pairs = [(x, y) for x, y in zip(xs, ys, strict=True) if is_number(y)]
    look = {"mode": "lines+markers" if len(pairs) <= 12 else "lines", "line": {"color": colour(place), "width": 2}}
    return points(name, [x for x, _ in pairs], [y for _, y in pairs], place, marker={"size": 7}, **(look | more))


def bars(name: str, xs: Sequence[Any], ys: Sequence[Any], place: int | None) -> Trace:
    return {"type": "bar", "name": words(name), "x": xs, "y": ys, "marker": {"color": colour(place)}}


def axis(title: str, **more: Any) -> dict[str, Any]:
    return {"title": {"text": title}} | more


def labelled_lines(places: Mapping[str, float]) -> dict[str, Any]:
    """Part of a layout: dotted lines across the chart at each x, and words that climb up the left of each."""
    line = {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    line |= {"line": {"color": "@soft", "width": 1, "dash": "dot"}}
    label = {"y": 0, "yref": "paper", "xanchor": "right", "yanchor": "bottom", "textangle": -90, "showarrow": False}
    label |= {"font": {"size": 11, "color": "@soft"}}
    return {
        "shapes": [line | {"x0": x, "x1": x} for x in places.values()],
        "annotations": [label | {"x": x, "text": words(text)} for text, x in places.items()],
    }
