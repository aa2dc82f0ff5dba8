"""Files that are plain files, of a reasonable size."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

MEGABYTE = 1_000_000


def one_line(error: Exception) -> str:
    """What an error says, short enough for another error to repeat it."""
    return " ".join(str(error).split())[:200]


@contextmanager
def open_plain(path: Path) -> Iterator[BinaryIO]:
    """A file to read; a pipe or a device, which may never end, is refused."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(f"{path} is not a plain file: remove it")
        yield file


def read_content(path: Path, limit: int) -> bytes:
    with open_plain(path) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{path} is larger than {limit / MEGABYTE:g} MB: it is not what its name says")
    return content
