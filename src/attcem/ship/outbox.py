"""Messages that wait for the cloud, on disk: what was released already, never a picture."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attcem.files import write_atomically
from attcem.locks import held
from attcem.reading.plain import read_content
from attcem.ship.artifact import WireFormat

ENDING = ".sent"


@dataclass(frozen=True)
class Outbox:
    """A folder of at most `size` messages of one artifact."""

    folder: Path
    wire: WireFormat
    size: int

    def put(self, id: str, sent: np.ndarray) -> None:
        """Keep a message for later; a full outbox takes none."""
        with self._locked():
            if len(self._files()) >= self.size:
                raise ValueError(f"{self.size} messages wait already in {self.folder}: this one is lost")
            write_atomically(self.folder / f"{time.time_ns():020d}-{id}{ENDING}", sent.tobytes())

    def waiting(self) -> int:
        return len(self._files())

    @contextmanager
    def emptying(self) -> Iterator[Iterator[tuple[str, np.ndarray]]]:
        """The messages, the oldest first; each is removed when the next is asked for."""
        with self._locked():
            yield self._each()

    def _each(self) -> Iterator[tuple[str, np.ndarray]]:
        for file in self._files():
            content, dtype = read_content(file, self.bytes), np.dtype(self.wire.dtype)
            if len(content) != self.bytes:
                raise ValueError(f"{file} is not a message of this artifact: remove it")
            sent = np.frombuffer(content, dtype).reshape(1, *self.wire.shape)
            yield file.name.removesuffix(ENDING).split("-")[1], sent
            file.unlink()

    @property
    def bytes(self) -> int:
        """Of one message."""
        return int(np.prod(self.wire.shape)) * np.dtype(self.wire.dtype).itemsize

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob(f"*{ENDING}"))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with held(self.folder / "lock", wait=True):
            yield


def new_id() -> str:
    return os.urandom(8).hex()
