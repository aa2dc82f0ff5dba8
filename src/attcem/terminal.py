"""The door to the terminal: whatever a line holds, it is printed as one line."""

from __future__ import annotations

from typing import TextIO

from attcem.escaping import in_terminal


def tell(*lines: object, file: TextIO | None = None) -> None:
    """Print every argument on a line of its own."""
    for line in lines:
        print(in_terminal(str(line)), file=file)
