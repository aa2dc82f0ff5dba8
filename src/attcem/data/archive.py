"""Read tar, tar.gz and zip archives in memory, trusting nothing in them: no file is ever extracted."""

import gzip
import io
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from attcem.progress import bar

MEMBER_CAP = 256 << 20
TOTAL_CAP = 4 << 30
COUNT_CAP = 1_000_000
DAMAGE = (
    *(ValueError, EOFError, OSError, RuntimeError, OverflowError),
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
)


class Refused(ValueError):
    """The archive is readable, but asks for something that no data set needs."""


@dataclass(frozen=True)
class Member:
    """One entry as the archive describes it; `open` gives a file of its content."""

    name: str
    size: int
    folder: bool
    regular: bool
    open: Callable[[], IO[bytes] | None]


def members(
    path: Path, *, member_cap: int = MEMBER_CAP, total_cap: int = TOTAL_CAP, progress: bool = False
) -> Iterator[tuple[str, bytes]]:
    """Every file of an archive as (name, content); a ValueError at the first thing that is damaged or hostile."""
    try:
        shown = bar(f"reading {path.name}", path.stat().st_size, unit="bytes", shown=progress)
        with path.open("rb") as raw, shown as show:
            for name, content in _checked(_reader(raw, member_cap, total_cap), member_cap, total_cap):
                show(raw.tell())
                yield name, content
    except Refused as error:
        raise ValueError(f"{path.name} is refused: {error}; get the archive from its official address") from error
    except DAMAGE as error:
        raise ValueError(f"{path.name} is truncated or corrupt ({error}): download it again") from error


def _checked(entries: Iterator[Member], member_cap: int, total_cap: int) -> Iterator[tuple[str, bytes]]:
    seen, total = set[str](), 0
    for count, entry in enumerate(entries, start=1):
        parts = entry.name.replace("\\", "/").split("/")
        if entry.name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0] or "\0" in entry.name:
            raise Refused(f"{entry.name!r} points outside the archive")
        name = str(PurePosixPath(*parts))
        if count > COUNT_CAP:
            raise Refused(f"it has more than {COUNT_CAP:,} members")
        if entry.folder:
            continue
        if not entry.regular:
            raise Refused(f"{name!r} is a link or a device, not a file")
        if name in seen:
            raise Refused(f"{name!r} is in it twice")
        if entry.size > member_cap:
            raise Refused(f"{name!r} unpacks to {entry.size:,} bytes, more than {member_cap:,}")
        if total + entry.size > total_cap:
            raise Refused(f"it unpacks to more than {total_cap:,} bytes")
        file = entry.open()
        content = file.read() if file else b""
        if len(content) != entry.size:
            raise EOFError(f"{name!r} has {len(content):,} of its {entry.size:,} bytes")
        seen.add(name)
        total += len(content)
        yield name, content


def _reader(raw: BinaryIO, member_cap: int, total_cap: int) -> Iterator[Member]:
    """The reader that the first bytes call for: an extension may lie."""
    start = raw.read(2)
    raw.seek(0)
    if start == b"PK":
        return _zip_members(raw)
    stream = gzip.GzipFile(fileobj=raw) if start == b"\x1f\x8b" else raw
    return _tar_members(_Forward(stream, member_cap, total_cap))  # type: ignore[arg-type]


def _zip_members(raw: BinaryIO) -> Iterator[Member]:
    with zipfile.ZipFile(raw) as archive:
        for info in archive.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            regular = kind in (0, stat.S_IFREG)  # 0: written by a system without file kinds
            folder = info.is_dir() and kind in (0, stat.S_IFDIR)
            yield Member(info.filename, info.file_size, folder, regular, partial(archive.open, info))


def _tar_members(stream: "_Forward") -> Iterator[Member]:
    with tarfile.open(fileobj=stream, mode="r:") as archive:
        while (info := archive.next()) is not None:
            regular = info.isreg() and not info.issparse()
            yield Member(info.name, info.size, info.isdir(), regular, partial(archive.extractfile, info))
    # tarfile takes a damaged header for the end; the true end is a block of zeros, and gzip's own sum comes last
    if stream.latest != bytes(tarfile.BLOCKSIZE):
        raise EOFError("the end of the archive is missing")
    while stream.read(1 << 20):
        pass


class _Forward(io.RawIOBase):
    """A stream that only goes forward and counts the bytes that really come out, whatever the headers say."""

    def __init__(self, stream: BinaryIO, member_cap: int, total_cap: int) -> None:
        self.stream, self.member_cap, self.total_cap = stream, member_cap, total_cap
        self.position, self.latest = 0, b""

    def tell(self) -> int:
        return self.position

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= self.member_cap + tarfile.RECORDSIZE:
            raise Refused(f"a member unpacks to more than {self.member_cap:,} bytes")
        self.latest = self.stream.read(size)
        self.position += len(self.latest)
        if self.position > self.total_cap:
            raise Refused(f"it unpacks to more than {self.total_cap:,} bytes")
        return self.latest

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence != io.SEEK_SET or offset < self.position:
            raise Refused("a header points backwards")
        while self.position < offset and self.read(min(offset - self.position, 1 << 20)):
            pass
        return self.position
