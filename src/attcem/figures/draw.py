"""Draw every figure that the runs have numbers for, and say which they have none for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from attcem.figures.errors import classes, floors, pairs, repeats, tradeoff
from attcem.figures.group import MOST, Group, groups_of
from attcem.figures.pictures import pictures
from attcem.figures.style import METADATA, encoded, styled
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
    crowded: bool = False  # whether only the first few of many defences fit


FIGURES = {
    "tradeoff": Drawing(tradeoff, ""),
    "pictures": Drawing(pictures, "no run kept pictures of an attack"),
    "training": Drawing(training, "no run recorded its training", crowded=True),
    "classes": Drawing(classes, "no run recorded the leak per class", crowded=True),
    "repeats": Drawing(repeats, "no run was attacked on several sends: audit with --suite standard", crowded=True),
    "pairs": Drawing(pairs, "no run was attacked with few public images: audit with --suite standard", crowded=True),
    "bounds": Drawing(floors, "no bounds: they need Gaussian noise and the suite quick, patient, standard or full"),
}


class Written(NamedTuple):
    """The files that were written, and what a reader of them should know."""

    files: list[Path]
    notes: list[str]


def draw_figures(
    results: Sequence[Result], out: str | Path, formats: Sequence[str] = FORMATS, at_accuracy: float | None = None
) -> Written:
    """Write every figure into a folder, one file per format; several data sets, networks or suites have each their own.

    All but the trade-off show a defence at one strength: the one whose accuracy is nearest to `at_accuracy`, by default
    the highest that all defences reach.
    """
    groups = groups_of(results, at_accuracy)
    written = Written([], [])
    with styled():
        for number, group in enumerate(groups, 1):
            place = re.sub(r"[^\w.-]+", "_", "_".join(group.place)).strip("._")[-60:]  # as part of a file's name
            suffix = "" if len(groups) == 1 else f"_{number}_{place or 'runs'}"
            for name, drawing in FIGURES.items():
                figure = drawing.draw(group)
                if figure is None:
                    written.notes.append(f"no {name}{suffix}: {drawing.missing}")
                    continue
                for form in dict.fromkeys(formats):
                    written.files.append(write_atomically(Path(out) / f"{name}{suffix}.{form}", encoded(figure, form)))
            written.notes.extend(notes(group, suffix))
    return written


def notes(group: Group, suffix: str) -> list[str]:
    shown = [
        f"{one.name} ({setting.accuracy:.4f}, {setting.seeds} seed{'s' * (setting.seeds > 1)})"
        for one in group.drawn
        for setting in one.settings
    ]
    lines = [f"shown{suffix}, at the accuracy nearest to {group.accuracy:.4f}: {'; '.join(shown)}"]
    if len(group.drawn) > MOST:
        crowded = ", ".join(name for name, drawing in FIGURES.items() if drawing.crowded)
        lines.append(f"only the first {MOST} of {len(group.drawn)} fit into {crowded}: name fewer folders")
    if flagged := sum(bool(run.flags) for run in group.runs):
        lines.append(f"flagged{suffix}: {flagged} of {len(group.runs)} runs, see attcem report")
    return lines
