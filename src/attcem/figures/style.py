"""How every figure looks: LaTeX columns, embedded fonts, colours that survive colour blindness and grey print."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

COLUMN, PAGE, TALLEST = 3.4, 7.0, 9.0  # inches: one column, two columns, and the most that a page holds
LETTER = 0.056  # width of one letter of a legend in inches, about
HANDLE = 8  # what a line of a legend needs beside its name, in letters
LONGEST = 44  # letters of the longest name that a legend shows

STYLE: Any = {"font.family": "DejaVu Sans", "pdf.fonttype": 42, "savefig.dpi": 300}
STYLE |= dict.fromkeys(("font.size", "axes.titlesize", "axes.labelsize"), 7)
STYLE |= dict.fromkeys(("legend.fontsize", "xtick.labelsize", "ytick.labelsize"), 6.5)
STYLE |= dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.6)
STYLE |= {"lines.linewidth": 1.0, "lines.markersize": 4, "errorbar.capsize": 1.5}
STYLE |= dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False)
STYLE |= dict.fromkeys(("axes.formatter.use_mathtext", "axes.formatter.useoffset"), False)
STYLE |= {"text.parse_math": False}  # a name may hold a dollar sign
METADATA: Any = {"png": {"Software": None}, "pdf": {"Creator": None, "Producer": None, "CreationDate": None}}
"""Format → what is not written into the file, so that the same runs give the same bytes."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's, without the yellow that white paper swallows; black is for no defence."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (7, 2)))


class Look(NamedTuple):
    """How one defence is drawn in all figures."""

    color: str
    marker: str
    linestyle: Any = "-"

    @property
    def line(self) -> dict[str, Any]:
        return {"color": self.color, "marker": self.marker, "linestyle": self.linestyle}

    @property
    def dot(self) -> dict[str, Any]:
        return self.line | {"linestyle": "none"}


UNDEFENDED = Look("black", "*")


def look(number: int) -> Look:
    """The number-th defence's look: colour, shape and dash each have their own period, so that few share two."""
    return Look(COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)], DASHES[number % len(DASHES)])


@contextmanager
def styled() -> Iterator[None]:
    """Draw with this style, whatever the user's own settings; matplotlib is imported here and not before."""
    try:
        import matplotlib
    except ImportError:
        raise ValueError("figures need matplotlib: pip install 'attcem[figures]'") from None
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def blank(width: float, height: float, **padding: Any) -> Figure:
    """An empty figure of this size in inches, whose parts make room for one another."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return Figure(figsize=(width, min(height, TALLEST)), layout=ConstrainedLayoutEngine(**padding))


def encoded(figure: Figure, form: str) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format=form, metadata=METADATA[form])
    return file.getvalue()


def short(name: str, letters: int = LONGEST) -> str:
    """A name that fits; never one that matplotlib would leave out because it begins with an underscore."""
    name = " ".join(name.split())
    fitting = name if len(name) <= letters else f"{name[: letters - 1]}…"
    return f" {fitting}" if fitting.startswith("_") else fitting


def wrapped(name: str, letters: int) -> str:
    return fill(short(name, 3 * letters), letters)


class Entry(NamedTuple):
    """One line of a legend: a name, and how it is drawn."""

    name: str
    style: dict[str, Any]


def with_legend(figure: Figure, entries: Sequence[Entry]) -> Figure:
    """Every name once, below everything, in as many columns as fit."""
    from matplotlib.lines import Line2D

    width = figure.get_figwidth()
    names = [short(entry.name, min(LONGEST, int(width / LETTER) - HANDLE)) for entry in entries]
    columns = int(width / (LETTER * (max(map(len, names)) + HANDLE)))
    handles = [Line2D([], [], **entry.style) for entry in entries]
    figure.legend(handles, names, loc="outside lower center", ncols=max(1, min(columns, len(names))))
    return figure


def plain_log(axis: Axis) -> None:
    """Label powers of ten, and what is between if they are few, as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
