"""Tables that one room has finished and another shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """Cells as they are printed, the first is the name; `runs` are the places of its results among those compared."""

    cells: tuple[str, ...]
    runs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Table:
    """What is compared, what a reader must know of it, and its lines; no lines where the notes say why."""

    title: str
    notes: tuple[str, ...]
    heading: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()
