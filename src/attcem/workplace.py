"""A run's folder while a process works in it: locked for others, and free of half-written files."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from attcem.files import PART, remove_leftovers
from attcem.locks import only_one

LOCK = ".run.lock"
LEFTOVER = re.compile(rf"\..+({re.escape(PART)}|\.(csv|json|npz|png|safetensors|yaml)\.\d+\.part)")
"""Half-written files of a killed process; older versions named them without our mark."""

_mine: set[tuple[Path, int]] = set()  # the folders that this process has locked, each with the thread that did


@contextmanager
def working_in(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Lock a run's folder; if another process has it, raise or wait. The thread that has it may lock it again.

    The lock is removed afterwards, and so is a folder to which nothing was written.
    """
    mine = folder.resolve(), threading.get_ident()
    if mine in _mine:
        yield
        return
    with only_one(folder / LOCK, "a process is at work", "wait for it, or stop it and add --resume", wait=wait):
        _mine.add(mine)
        try:
            remove_leftovers(path for path in folder.rglob(".*.part") if LEFTOVER.fullmatch(path.name))
            yield
        finally:
            _mine.remove(mine)
            (folder / LOCK).unlink(missing_ok=True)
            with suppress(OSError):
                folder.rmdir()
