"""The door to the terminal: whatever a line holds, it is printed as one line."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from attcem.escaping import in_terminal


def tell(*lines: object, file: TextIO | None = None) -> None:
    for line in lines:
        print(in_terminal(str(line)), file=file)


@contextmanager
def interruptible(advice: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(advice) from None


@contextmanager
def allow_closed_pipe() -> Iterator[None]:
    """End quietly when nobody reads on, as in `attcem list | head`."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing is left to fail at exit
