"""The bytes of a file, if it is a plain file of a reasonable size."""

from __future__ import annotations

import os
import stat
from pathlib import Path

MEGABYTE = 1_000_000


def read_content(path: Path, limit: int) -> bytes:
    """The whole file; a pipe or a device, which may never end, and a file beyond the limit are refused."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(f"{path} is not a plain file: remove it")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{path} is larger than {limit / MEGABYTE:g} MB: it is not what its name says")
    return content
