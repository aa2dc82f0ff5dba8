"""Draw every figure that the runs have numbers for, and say which they have none for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from attcem.figures.attacker import pairs, repeats
from attcem.figures.classes import classes
from attcem.figures.floors import floors
from attcem.figures.group import MOST, Group, groups_of
from attcem.figures.pictures import pictures
from attcem.figures.style import METADATA, encoded, styled
from attcem.figures.tradeoff import tradeoff
from attcem.figures.training import training
from attcem.files import write_atomically
from attcem.types import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = tuple(METADATA)


class Drawing(NamedTuple):
    """How a figure is drawn, and why it may be missing."""

    draw: Callable[[Group], "Figure | None"]
    missing: str
    crowded: bool = False
    """Whether only the first few of many defences fit."""


FIGURES = {
    "tradeoff": Drawing(tradeoff, ""),
    "pictures": Drawing(pictures, "no run kept pictures of an attack"),
    "training": Drawing(training, "no run recorded its training", crowded=True),
    "classes": Drawing(classes, "no run recorded the leak per class", crowded=True),
    "repeats": Drawing(repeats, "no run was attacked on several sends: audit with --suite standard", crowded=True),
    "pairs": Drawing(pairs, "no run was attacked with few public images: audit with --suite standard", crowded=True),
    "bounds": Drawing(floors, "no run has bounds: they need Gaussian noise and the suite quick, standard or full"),
}


@dataclass
class Written:
    """The files that were written, and what a reader of them should know."""

    files: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def draw_figures(
    results: Sequence[Result],
    out: str | Path,
    formats: Sequence[str] = FORMATS,
    at_accuracy: float | None = None,
) -> Written:
    """Write every figure into a folder, one file per format; several data sets, networks or suites have each their own.

    All but the trade-off show a defence at one strength: the one whose accuracy is nearest to `at_accuracy`, by default
    the highest that all defences reach.
    """
    groups = groups_of(results, at_accuracy)
    written = Written()
    with styled():
        for number, group in enumerate(groups, 1):
            suffix = "" if len(groups) == 1 else f"_{number}_{slug('_'.join(group.place))}"
            for name, drawing in FIGURES.items():
                figure = drawing.draw(group)
                if figure is None:
                    written.notes.append(f"no {name}{suffix}: {drawing.missing}")
                    continue
                for form in dict.fromkeys(formats):
                    path = Path(out) / f"{name}{suffix}.{form}"
                    written.files.append(write_atomically(path, encoded(figure, form)))
            written.notes += notes(group, suffix)
    return written


def notes(group: Group, suffix: str) -> list[str]:
    """What belongs into a caption: strengths, seeds, flags, and what did not fit."""
    shown = [
        f"{one.name} ({setting.accuracy:.4f}, {setting.seeds} seed{'s' * (setting.seeds > 1)})"
        for one in group.drawn
        for setting in one.settings
    ]
    flagged = sum(bool(run.flags) for run in group.runs)
    lines = [f"shown{suffix}, at the accuracy nearest to {group.accuracy:.4f}: {'; '.join(shown)}"]
    if len(group.drawn) > MOST:
        crowded = ", ".join(name for name, drawing in FIGURES.items() if drawing.crowded)
        lines.append(f"only the first {MOST} of {len(group.drawn)} fit into {crowded}: name fewer folders")
    if flagged:
        lines.append(f"flagged{suffix}: {flagged} of {len(group.runs)} runs, see attcem report")
    return lines


def slug(text: str) -> str:
    """Text as part of a file's name."""
    return re.sub(r"[^\w.-]+", "_", text).strip("._")[-60:] or "runs"
