"""A run's folder while somebody works in it: held by one process, free of what a killed one left half-written."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attcem.files import PART, remove_leftovers
from attcem.locks import only_one

LOCK = ".run.lock"
LEFTOVER = re.compile(rf"\..+({re.escape(PART)}|\.(csv|json|npz|png|safetensors|yaml)\.\d+\.part)")
"""What a killed process left half-written; one of an older version gave it no mark of its own."""

_mine: set[tuple[Path, int]] = set()
"""The folders that are held here, each with the thread that holds it."""


@contextmanager
def working_in(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold a run's folder, refusing or waiting for others; who holds it already may ask again.

    Nothing is left of the lock afterwards, nor of a folder that nothing was written to.
    """
    mine = folder.resolve(), threading.get_ident()
    if mine in _mine:
        yield
        return
    advice = "wait for it, or stop it and add --resume"
    with only_one(folder / LOCK, "a process is at work", advice, wait=wait):
        _mine.add(mine)
        try:
            remove_leftovers(path for path in folder.rglob(".*.part") if LEFTOVER.fullmatch(path.name))
            yield
        finally:
            _mine.remove(mine)
            (folder / LOCK).unlink(missing_ok=True)
            with suppress(OSError):
                folder.rmdir()
