"""What stands on a slide, as plain data: parts with their places in inches; nothing here knows a file format."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

INK, SOFT, RULE, PALE, ACCENT, PAPER = "1B1C1E", "5B5E65", "D5D8DC", "EDF4F9", "0072B2", "FFFFFF"
SMALLEST = 14  # points


class Box(NamedTuple):
    """A place on the slide, in inches."""

    left: float
    top: float
    width: float
    height: float


WIDE, HIGH = 13.333, 7.5
KICKER, TITLE = Box(0.6, 0.35, 12.1, 0.35), Box(0.6, 0.7, 12.1, 1.05)
OPENING_KICKER, OPENING_TITLE = Box(0.6, 1.6, 12.1, 0.4), Box(0.6, 2.1, 11.2, 2.4)
BODY = Box(0.6, 1.95, 12.1, 4.85)
FOOT = Box(0.6, 6.98, 12.1, 0.3)


@dataclass(frozen=True)
class Text:
    """Paragraphs, in one size and colour."""

    box: Box
    paragraphs: tuple[str, ...]
    size: float = 20
    colour: str = INK
    bold: bool = False
    formula: bool = False  # whether _ and ^ begin what stands lower and higher
    align: Literal["left", "center", "right"] = "left"


@dataclass(frozen=True)
class Block:
    """A rectangle with words in its middle."""

    box: Box
    words: str
    size: float = 16
    fill: str = PALE
    line: str = ACCENT
    dashed: bool = False


@dataclass(frozen=True)
class Arrow:
    """From one place to another."""

    start: tuple[float, float]
    end: tuple[float, float]
    colour: str = INK
    dashed: bool = False


@dataclass(frozen=True)
class Picture:
    """A PNG, as large as its box."""

    box: Box
    png: bytes
    words: str = ""  # for those who cannot see it


@dataclass(frozen=True)
class Table:
    """Cells as they are printed; the first column is left-aligned, strong lines stand out."""

    box: Box
    heading: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    widths: tuple[float, ...]  # of the columns, in inches
    size: float = 16
    strong: frozenset[int] = frozenset()


class Series(NamedTuple):
    """Points of a chart, joined by a line of this dash if there is one; the bars are half as long as they are drawn."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    colour: str
    marker: str = ""
    dash: str = ""
    x_bars: Sequence[float] = ()
    y_bars: Sequence[float] = ()


@dataclass(frozen=True)
class Plot:
    """A chart of points and lines that can be edited."""

    box: Box
    series: tuple[Series, ...]
    across: str
    up: str
    legend: bool = True
    log: bool = False


Part = Text | Block | Arrow | Picture | Table | Plot


@dataclass(frozen=True)
class Page:
    """One slide: what it says in a sentence, its parts, and what to say with it."""

    kicker: str
    title: str
    parts: tuple[Part, ...]
    notes: str
    opening: bool = False  # the first of a talk
