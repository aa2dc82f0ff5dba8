"""Files that are whole or not there."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from attcem.locks import held, is_still, lock

PART = ".attcem.part"  # how the name of a half-written file ends; whoever writes it holds it


def default_root() -> Path:
    """Where data sets are kept: the environment's ATTCEM_DATA, or ~/.cache/attcem."""
    return Path(os.environ.get("ATTCEM_DATA") or "~/.cache/attcem").expanduser()


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write that takes the path's place at the end: a reader, or a crash, sees the old or the new, whole."""
    remove_leftovers(path.parent.glob(f".*{PART}"))
    partial = path.with_name(f".{path.name}.{os.getpid()}{PART}")
    with held(partial, "r+b", wait=True) as file:
        assert file is not None, "it was waited for"
        try:
            file.truncate(0)
            yield file
            file.flush()
            os.fsync(file.fileno())
            partial.replace(path)
        except BaseException:  # not after it took the path's place: another thread may be writing under its name
            partial.unlink(missing_ok=True)
            raise


def write_atomically(path: Path, content: bytes) -> Path:
    with replacing(path) as file:
        file.write(content)
    return path


def remove_leftovers(parts: Iterable[Path]) -> None:
    """Remove half-written files that no process holds any more: the one that wrote them was killed."""
    for part in parts:
        with suppress(OSError):
            if part.is_file():
                with part.open("rb") as file:
                    if lock(file) and is_still(part, file):
                        part.unlink()
