"""How much room words take, guessed from above: what fits here fits in any common font."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from unicodedata import east_asian_width

from attcem.slides.page import SMALLEST, Box, Table, Text

POINTS = 72  # in an inch
LINE = 1.28  # height of a line, and
BETWEEN = 0.45  # what is left free between paragraphs, both in sizes of the letters
NARROW, BROAD = set("iljtfrI.,:;'|!()[] "), set("mwMW@%—")
TINY = 1e-6  # of an inch: sums of widths differ by how they were added
NAME = 1.6  # inches that a column of names keeps
PADDING = 0.1  # of a table's cell, on each side


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """Inches of one line.

    >>> round(width_of("潜变量", 24), 2)
    1.0
    """
    return sum(map(_em, text)) * size / POINTS * (1.07 if bold else 1.0)


def _em(letter: str) -> float:
    if east_asian_width(letter) in "WF":
        return 1.0
    if letter in NARROW:
        return 0.34
    return 0.96 if letter in BROAD else 0.74 if letter.isupper() else 0.57


def lines_of(text: str, width: float, size: float, *, bold: bool = False) -> int:
    """Lines of a paragraph: words are kept whole, between Chinese characters any place will do."""
    lines, used = 1, 0.0
    for piece in re.findall(r"[⺀-鿿＀-￯]|[^\s⺀-鿿＀-￯]+|\s+", text):
        long = width_of(piece, size, bold=bold)
        if used and used + long > width + TINY:
            lines, used = lines + 1, 0.0
            if piece.isspace():
                continue
        more = int(long // width) if long > width + TINY else 0
        lines, used = lines + more, used + long - more * width
    return lines


def height_of(paragraphs: Sequence[str], width: float, size: float, *, bold: bool = False) -> float:
    lines = sum(lines_of(text, width, size, bold=bold) for text in paragraphs)
    return (LINE * lines + BETWEEN * (len(paragraphs) - 1)) * size / POINTS


def largest(paragraphs: Sequence[str], box: Box, most: float, *, bold: bool = False) -> float | None:
    """The largest size, from `most` down, at which they fit into the box."""
    sizes = list(range(int(most), SMALLEST - 1, -1))
    return next((s for s in sizes if height_of(paragraphs, box.width, s, bold=bold) <= box.height), None)


def fitted(text: Text) -> Text:
    """The same text at a size that fits; where none does, the end is left out and an ellipsis says so."""
    paragraphs = [words for words in text.paragraphs if words]
    size = largest(paragraphs, text.box, text.size, bold=text.bold)
    while size is None and paragraphs != ["…"]:
        paragraphs = shortened(paragraphs)
        size = largest(paragraphs, text.box, SMALLEST, bold=text.bold)
    return replace(text, paragraphs=tuple(paragraphs), size=size or SMALLEST)


def shortened(paragraphs: Sequence[str]) -> list[str]:
    """The same with a little less at the end."""
    *before, last = paragraphs
    kept = last.removesuffix("…")
    kept = kept[: -max(1, len(kept) // 10)].rstrip(" ,;:.，；：。")
    return [*before, f"{kept}…"] if kept or not before else [*before[:-1], f"{before[-1]}…"]


def tables(
    box: Box, heading: Sequence[str], lines: Sequence[Sequence[str]], strong: Sequence[int] = (), most: float = 18
) -> list[Table]:
    """The lines as tables that fit into the box, one for each slide they need.

    Letters are as large as they can be with every cell on one line, or else with wide columns wrapped.
    """
    rows, sizes = [heading, *lines], range(int(most), SMALLEST - 1, -1)
    layouts = [(column_widths(rows, room, size), size) for room in (math.inf, box.width) for size in sizes]
    fitting = (layout for layout in layouts if fits(rows, *layout, box))
    widths, size = next(fitting, layouts[-1])
    heights = [row_height(row, widths, size) for row in rows]
    found, start = [], 0
    while start < len(lines):
        end, used = start, heights[0]
        while end < len(lines) and (end == start or used + heights[end + 1] <= box.height):
            used += heights[end + 1]
            end += 1
        own = frozenset(place - start for place in strong if start <= place < end)
        shown = tuple(tuple(line) for line in lines[start:end])
        high = Box(box.left, box.top, sum(widths), used)
        found.append(Table(high, tuple(heading), shown, tuple(widths), size, own))
        start = end
    return found


def fits(rows: Sequence[Sequence[str]], widths: Sequence[float], size: float, box: Box) -> bool:
    """Whether they fit as they are, with no number wrapped."""
    figures = [place for place, column in enumerate(zip(*rows[1:], strict=True)) if holds_figures(column)]
    if any(width_of(row[place], size) > widths[place] - 2 * PADDING + TINY for row in rows[1:] for place in figures):
        return False
    return sum(widths) <= box.width + TINY and sum(row_height(row, widths, size) for row in rows) <= box.height


def column_widths(rows: Sequence[Sequence[str]], room: float, size: float) -> tuple[float, ...]:
    """As wide as the cells need; where that is more than the room, columns of names give way, then all of them."""
    columns = list(zip(*rows, strict=True))
    wanted = [max(width_of(cell, size, bold=True) for cell in column) + 2 * PADDING for column in columns]
    yielding = [not holds_figures(column[1:]) for column in columns]
    kept = sum(width for width, yields in zip(wanted, yielding, strict=True) if not yields)
    if room - kept < NAME * sum(yielding):
        yielding, kept = [True] * len(wanted), 0.0
    most = level([width for width, yields in zip(wanted, yielding, strict=True) if yields], room - kept)
    return tuple(min(width, most) if yields else width for width, yields in zip(wanted, yielding, strict=True))


def holds_figures(cells: Sequence[str]) -> bool:
    """Whether a column holds numbers, which stand at the right and should not wrap."""
    return all(sum(letter.isalpha() for letter in cell) <= 3 for cell in cells)


def level(widths: Sequence[float], room: float) -> float:
    """The width that none may exceed, so that all of them fill the room at most."""
    low, high = 0.0, max(widths, default=0.0)
    if sum(widths) <= room:
        return high
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(min(width, middle) for width in widths) <= room else (low, middle)
    return low


def row_height(row: Sequence[str], widths: Sequence[float], size: float) -> float:
    lines = max(lines_of(cell, width - 2 * PADDING, size, bold=True) for cell, width in zip(row, widths, strict=True))
    return (LINE * lines + 0.5) * size / POINTS
