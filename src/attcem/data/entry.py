"""What a line of the table of data sets can be: published, the user's own path, or something of its own."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from attcem.data.fetch import fetch, parse_checksum, wrong_checksum
from attcem.data.source import Source


@dataclass(frozen=True)
class Entry(ABC):
    """One data set: a sentence about it, how to read it, and how to get it."""

    about: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.about)  # lists and help() then speak of the data set

    @abstractmethod
    def read(self, name: str, path: str, root: Path, memory: int) -> Source:
        """The published arrays; `path` is what stands after the colon in the name, if anything."""

    nothing_to_get: ClassVar[str]

    def get(self, name: str, root: Path, source: Path | None, checksum: str | None, progress: bool) -> Path:
        """Bring the data set into the cache, where it is the file NAME.npz, from its address or from a file."""
        raise ValueError(self.nothing_to_get.format(name=name))


@dataclass(frozen=True)
class Given(Entry):
    """The user's own data, named by a path after a colon."""

    reader: Callable[[Path, int], Source]
    nothing_to_get = "{name} reads your own files where they are: type load_data('{name}:PATH')"

    def read(self, name: str, path: str, root: Path, memory: int) -> Source:
        if not path:
            raise ValueError(f"{name} needs a path: type {name}:PATH")
        return self.reader(Path(path).expanduser(), memory)


@dataclass(frozen=True)
class Cached(Entry):
    """A data set that `get` puts into the cache as one .npz file."""

    def read(self, name: str, path: str, root: Path, memory: int) -> Source:
        if not (root / f"{name}.npz").exists():
            raise ValueError(f"{name} is not in {root}: type: attcem data get {name}")
        return Source.read(root / f"{name}.npz", memory)


@dataclass(frozen=True)
class Published(Cached):
    """An archive with a public address; `parse` reads it in memory, so nothing is extracted to disk."""

    archives: dict[str, str]  # address → checksum; the first is the usual one
    parse: Callable[[Path, bool], Source]

    def get(self, name: str, root: Path, source: Path | None, checksum: str | None, progress: bool) -> Path:
        target, usual = root / f"{name}.npz", next(iter(self.archives))
        if source is not None:
            if not source.is_file():
                raise ValueError(f"{source} is not a file: --from takes the archive of {usual}")
            if problem := wrong_checksum(source, [checksum] if checksum else list(self.archives.values())):
                advice = "pass the value you trust with --checksum sha256:HEX if you know this file"
                raise ValueError(f"{source} {problem}: {advice}")
            return self.parse(source, progress).write(target)
        if target.exists():
            return target
        wanted = parse_checksum(checksum) if checksum else None
        url = next((url for url, known in self.archives.items() if parse_checksum(known) == wanted), usual)
        part = root / f"{url.rsplit('/', 1)[-1]}.part"
        fetch(url, part, [checksum or self.archives[url]], progress=progress)
        try:
            self.parse(part, progress).write(target)
        except ValueError:
            part.unlink()  # the checksum was right, so the next download would bring the same bytes
            raise
        part.unlink()
        return target
