"""Files that one process locks at a time; the kernel unlocks them when that process ends, however it ends."""

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any


def lock(file: IO, *, wait: bool = False) -> bool:
    """Lock an open file until it is closed; False if somebody else has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def is_still(path: Path, file: IO) -> bool:
    """Whether a path still leads to an open file, which may have been removed or replaced since."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


@contextmanager
def held(path: Path, mode: str = "r+", *, wait: bool = False) -> Iterator[IO[Any] | None]:
    """A file, created if missing and locked until the end; None if somebody else has locked it."""
    made = os.O_CREAT | os.O_NOFOLLOW  # if it is missing; never emptied, and never reached through a link
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, mode, opener=lambda name, flags: os.open(name, flags | made, 0o666)) as file:
            try:
                mine = lock(file, wait=wait)
            except OSError as error:
                if error.errno not in (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK):
                    raise
                mine = True  # a file system without locks: there, nobody can be kept out
            if mine and not is_still(path, file):
                continue  # its last holder has just removed it
            yield file if mine else None
            return


@contextmanager
def only_one(path: Path, work: str, advice: str, *, wait: bool = False) -> Iterator[None]:
    """Lock a file for some work in its folder, or raise an error that names the process at work."""
    folder = path.parent
    with ExitStack() as stack:
        try:
            file = stack.enter_context(held(path, wait=wait))
        except OSError as error:
            raise ValueError(f"cannot write to {folder} ({error.strerror}): choose another --out") from None
        if file is None:
            holder = path.read_text().strip() or "another process"
            raise ValueError(f"{work} in {folder} ({holder}): {advice}")
        with suppress(OSError):  # only says who it is: a full disk may leave it empty
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
            file.flush()
        yield
