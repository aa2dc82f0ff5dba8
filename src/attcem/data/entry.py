"""What a line of the table of data sets can be: embedded, published, or the user's own path."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from attcem.data.fetch import fetch, parse_checksum, wrong_checksum
from attcem.data.source import Source


@dataclass(frozen=True)
class Request:
    """What the user asked `get` for."""

    name: str
    root: Path
    source: Path | None = None
    checksum: str | None = None
    progress: bool = True

    @property
    def target(self) -> Path:
        """The one file that the cache keeps of a data set."""
        return self.root / f"{self.name}.npz"


@dataclass(frozen=True)
class Entry(ABC):
    """One data set: a sentence about it, how to read it, and how to get it."""

    about: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.about)  # lists and help() then speak of the data set

    @abstractmethod
    def read(self, name: str, path: str, root: Path, memory: int) -> Source:
        """The published arrays; `path` is what stands after the colon in the name, if anything."""

    nothing_to_get: ClassVar[str] = ""

    def get(self, request: Request) -> Path:
        """Bring the data set into the cache and return its file."""
        raise ValueError(self.nothing_to_get.format(name=request.name))


@dataclass(frozen=True)
class Embedded(Entry):
    """A data set that comes with the package."""

    file: Callable[[], Source]
    nothing_to_get = "{name} comes with attcem: there is nothing to get, type: load_data({name!r})"

    def read(self, name: str, path: str, root: Path, memory: int) -> Source:
        """Read the package's own file."""
        _no_path(name, path)
        return self.file()


@dataclass(frozen=True)
class Given(Entry):
    """The user's own data, named by a path after a colon."""

    reader: Callable[[Path, int], Source]
    nothing_to_get = "{name} reads your own files where they are: type load_data('{name}:PATH')"

    def read(self, name: str, path: str, root: Path, memory: int) -> Source:
        """Read what lies at the path."""
        if not path:
            raise ValueError(f"{name} needs a path: type {name}:PATH")
        return self.reader(Path(path).expanduser(), memory)


@dataclass(frozen=True)
class Cached(Entry):
    """A data set that `get` puts into the cache as one .npz file."""

    def read(self, name: str, path: str, root: Path, memory: int) -> Source:
        """Read the cached file."""
        _no_path(name, path)
        cached = Request(name, root).target
        if not cached.exists():
            raise ValueError(f"{name} is not in {root}: type: attcem data get {name}")
        return Source.read(cached, memory)


@dataclass(frozen=True)
class Address:
    """Where an archive is published, and its checksum."""

    url: str
    checksum: str


@dataclass(frozen=True)
class Published(Cached):
    """An archive with a public address; `parse` reads it in memory, so nothing is extracted to disk."""

    addresses: tuple[Address, ...]
    parse: Callable[[Path, bool], Source]

    def get(self, request: Request) -> Path:
        """Download, or take the given file; verify; parse; write the cache's file; remove the download."""
        if request.source is not None:
            return self._from_file(request, request.source)
        if request.target.exists():
            return request.target
        address = self._address(request.checksum)
        part = request.root / f"{address.url.rsplit('/', 1)[-1]}.part"
        fetch(address.url, part, [request.checksum or address.checksum], progress=request.progress)
        try:
            written = self.parse(part, request.progress).write(request.target)
        except ValueError:
            part.unlink()  # the checksum was right, so the next download would bring the same bytes
            raise
        part.unlink()
        return written

    def _from_file(self, request: Request, archive: Path) -> Path:
        if not archive.is_file():
            raise ValueError(f"{archive} is not a file: --from takes the archive of {self.addresses[0].url}")
        accepted = [request.checksum] if request.checksum else [address.checksum for address in self.addresses]
        if problem := wrong_checksum(archive, accepted):
            advice = "pass the value you trust with --checksum sha256:HEX if you know this file"
            raise ValueError(f"{archive} {problem}: {advice}")
        return self.parse(archive, request.progress).write(request.target)

    def _address(self, checksum: str | None) -> Address:
        """The address whose checksum the user asks for, else the first."""
        wanted = parse_checksum(checksum) if checksum else None
        known = (address for address in self.addresses if parse_checksum(address.checksum) == wanted)
        return next(known, self.addresses[0])


def _no_path(name: str, path: str) -> None:
    if path:
        raise ValueError(f"{name} takes no path: type {name!r}, or npz:PATH or imagefolder:PATH for your own data")
