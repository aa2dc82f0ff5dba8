"""How the pictures look: matplotlib in the report's type and colours, measured in pixels of its page."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Int, Int64, UInt8
from matplotlib import font_manager, rc_context
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from attcem.figures import style

INK, SOFT, RULE, BLUE, ORANGE = "#1c1d1f", "#5a5d63", "#dcdcd6", "#005f9e", "#b34700"
KINDS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#a0d750", "#f0c828", "#17becf")
OTHER = "#cdcdc8"  # of everything after the tenth kind, and of what is not known
FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "PingFang SC", "Microsoft YaHei", "Arial Unicode MS")
"""Each letter is taken from the first of these that the machine has and that knows it."""
AMOUNT = LinearSegmentedColormap.from_list("amount", ["#f0f4f7", BLUE]).with_extremes(bad=OTHER)
MORE_OR_LESS = LinearSegmentedColormap.from_list("more or less", [BLUE, "white", ORANGE])
SMALL = 8.25
Cover = Float[np.ndarray, "a b 4"]
MOST_ROWS = 12
LETTERS = 24  # of the longest name that is written out

STYLE: Any = {"font.size": 9.75, "axes.titlesize": 9.75, "legend.fontsize": 9, "legend.title_fontsize": 9}
STYLE |= dict.fromkeys(("axes.labelsize", "xtick.labelsize", "ytick.labelsize"), SMALL)
STYLE |= dict.fromkeys(("axes.labelcolor", "xtick.color", "ytick.color"), SOFT)
STYLE |= {"text.color": INK, "axes.edgecolor": RULE, "axes.facecolor": "none", "figure.facecolor": "#fcfcfa"}
STYLE |= {"axes.titlelocation": "left", "image.aspect": "auto", "figure.constrained_layout.h_pad": 0.1}
STYLE |= {"savefig.dpi": 192, "savefig.bbox": "tight", "savefig.pad_inches": 0.15}


def styled() -> AbstractContextManager[None]:
    here = font_manager.get_font_names()
    return rc_context(STYLE | {"font.family": [font for font in FONTS if font in here]})


def blank(width: float, height: float, **options: Any) -> Figure:
    """An empty figure of so many pixels; what stands out of it is kept when it is saved."""
    return Figure(figsize=(width / 96, height / 96), **options)


def png(figure: Figure) -> bytes:
    return style.encoded(figure, "png")


def rows(names: Sequence[str], width: float, row: float) -> tuple[Figure, Axes]:
    """A row of so many pixels for every name, to put pictures in."""
    figure = blank(width, row * len(names))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(row * len(names), 0), xticks=[])
    axes.spines[:].set_visible(False)
    axes.set_yticks(row * (np.arange(len(names)) + 0.4), names)
    axes.tick_params(left=False, labelsize=9.75, labelcolor=INK)
    return figure, axes


def put_picture(
    axes: Axes, x: float, y: float, size: float, pixels: UInt8[np.ndarray, "h w 3"], cover: Cover | None = None
) -> None:
    """A picture inside a square; in grey under a cover, the colours of a coarser grid."""
    high, wide = size * np.array(pixels.shape[:2]) / max(pixels.shape[:2])
    left, top = x + (size - wide) / 2, y + (size - high) / 2
    extent = (left, left + wide, top + high, top)
    if cover is None:
        axes.imshow(pixels, extent=extent)
    else:
        axes.imshow(pixels.mean(2), cmap="gray", vmin=0, vmax=255, extent=extent)
        axes.imshow(cover, extent=extent)


def put_note(axes: Axes, x: float, y: float, text: str, ha: Literal["left", "center", "right"] = "center") -> None:
    axes.text(x, y, text, color=SOFT, fontsize=SMALL, ha=ha, va="center")


def short(name: str) -> str:
    """A name without its middle, if it is long: names of one kind often differ at their ends.

    >>> short("a" * 20 + "b" * 20)
    'aaaaaaaaaaaa…bbbbbbbbbbb'
    """
    half = LETTERS // 2
    return name if len(name) <= LETTERS else f"{name[:half]}…{name[1 - half :]}"


def kinds(numbers: Int[np.ndarray, "*n"]) -> Float[np.ndarray, "*n 4"]:
    """A colour of its own for 0 … 9, one pale grey for all others."""
    return to_rgba_array([*KINDS, OTHER])[np.minimum(numbers, len(KINDS))]


def swatch(number: int, name: str) -> Any:
    return Patch(color=(*KINDS, OTHER)[min(number, len(KINDS))], label=style.short(name))


def chosen_rows(y: Int64[np.ndarray, " m"], score: Callable[[int], float]) -> list[int]:
    """All classes, or as many as fit with the highest scores, in their own order."""
    present = [int(c) for c in np.unique(y)]
    return sorted(sorted(present, key=score, reverse=True)[:MOST_ROWS])


def of_how_many(shown: list[int], y: Int64[np.ndarray, " m"], why: str) -> str:
    present = len(np.unique(y))
    return f" Shown are {len(shown)} of {present} classes: {why}." if len(shown) < present else ""


def doublings(ratio: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """log₂ of a share over an equal share."""
    return np.log2(np.maximum(ratio, 1e-12))


def cover_of(weight: Float[np.ndarray, "a b"]) -> Cover:
    """Colours of positions, by their weight over the image's mean: full from twice, or half, of it on."""
    level = doublings(weight / max(weight.mean(), 1e-30))
    cover = MORE_OR_LESS(np.where(level > 0, 1.0, 0.0))
    cover[..., 3] = 0.75 * np.minimum(1, np.abs(level))
    return cover
