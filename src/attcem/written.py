"""A grid of cells under lines that say how to read it, as a terminal, Markdown or LaTeX shows it."""

from collections.abc import Sequence

from attcem.escaping import in_latex, in_markdown, in_terminal

Grid = Sequence[Sequence[str]]
"""The headings, then one line after another."""


def as_text(opening: Sequence[str], grid: Grid) -> str:
    shown = [list(map(in_terminal, line)) for line in grid]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in shown]
    return "\n".join([*map(in_terminal, opening), *[""] * bool(opening), *table])


def as_markdown(opening: Sequence[str], grid: Grid) -> str:
    heading, *lines = [f"| {' | '.join(map(in_markdown, line))} |" for line in grid]
    return "\n\n".join([*map(in_markdown, opening), "\n".join([heading, "|" + "---|" * len(grid[0]), *lines])])


def as_latex(opening: Sequence[str], grid: Grid) -> str:
    """A table for a paper, with booktabs; what opens it stands above as comments."""
    heading, *lines = [" & ".join(map(in_latex, line)) + r" \\" for line in grid]
    comments = [f"% {' '.join(line.split())}" for line in opening]
    columns = "l" + "r" * (len(grid[0]) - 2) + "l"
    table = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", heading, r"\midrule", *lines, r"\bottomrule"]
    return "\n".join([*comments, r"% \usepackage{booktabs}", *table, r"\end{tabular}"])
