"""Text from results, such as the name of a defence or a class, as a terminal, Markdown, LaTeX or CSV shows it."""

import csv
import io
import json
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"}
IN_MARKDOWN = str.maketrans({letter: f"\\{letter}" for letter in "\\`*_[~$"} | ENTITIES)
WORDS = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}"}
MATHS = {"<": "$<$", ">": "$>$", "−": "$-$", "±": r"$\pm$", "σ": r"$\sigma$", "λ": r"$\lambda$", "ε": r"$\epsilon$"}
BRACKET = {"[": "{[}"}  # right after a line's end, a bare one would be read as a distance
IN_LATEX = str.maketrans({letter: f"\\{letter}" for letter in "#$%&_{}"} | WORDS | MATHS | BRACKET | {"–": "--"})


def in_terminal(text: str) -> str:
    r"""Text on one line, with what moves the cursor or cannot be seen written out; letters of every script stay.

    >>> print(in_terminal("a\n\x1b[2J名字"))
    a\n\u001b[2J名字
    """
    return "".join(
        letter
        if letter.isprintable() or unicodedata.category(letter) == "Zs"  # a space of any width
        else json.dumps(letter)[1:-1].replace("\x7f", r"\u007f")  # as JSON does, so that JSON stays JSON
        for letter in text
    )


def in_markdown(text: str) -> str:
    r"""Text as Markdown shows it, on one line: no tag, link, emphasis or new cell.

    >>> print(in_markdown("a_b|<b>[c](d)"))
    a\_b&#124;&lt;b&gt;\[c](d)
    """
    return _one_line(text).translate(IN_MARKDOWN)


def in_latex(text: str) -> str:
    r"""Text as LaTeX prints it, on one line.

    >>> print(in_latex("a_b & 5 %: −1 ± 2"))
    a\_b \& 5 \%: $-$1 $\pm$ 2
    """
    return _one_line(text).translate(IN_LATEX)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def in_csv(cell: Any) -> Any:
    """A cell that a spreadsheet shows and does not compute: text on one line, after an apostrophe if need be.

    >>> in_csv("=1+1"), in_csv("noise"), in_csv(-0.5)
    ("'=1+1", 'noise', -0.5)
    """
    if not isinstance(cell, str):
        return cell
    line = _one_line(cell)
    return f"'{line}" if line.startswith(("=", "+", "-", "@")) else line


def as_csv(records: Sequence[Mapping[str, Any]]) -> str:
    """Records under a heading of all their keys; what a record does not have is empty."""
    names = list(dict.fromkeys(name for record in records for name in record))
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(map(in_csv, names))
    writer.writerows([in_csv(record.get(name)) for name in names] for record in records)
    return written.getvalue()
