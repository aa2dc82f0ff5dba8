"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009), from their python or binary archive."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import numpy as np

from attcem.data import inert_pickle
from attcem.data.archive import members
from attcem.data.entry import Address, Published
from attcem.data.inert_pickle import text_of
from attcem.data.source import Source

PIXELS = 3 * 32 * 32
ADVICE = "get the archive from its official address"


@dataclass(frozen=True)
class Layout:
    """How one of the two archives calls its parts."""

    train: str
    test: str
    meta: str
    names: str
    """Key of the class names in the python form's meta."""
    names_file: str
    """File of the class names in the binary form."""
    labels: str
    label_bytes: int
    """Bytes before the pixels of a binary record; the last one is the label we want."""


TEN = Layout("data_batch_*", "test_batch", "batches.meta", "label_names", "batches.meta.txt", "labels", 1)
HUNDRED = Layout("train", "test", "meta", "fine_label_names", "fine_label_names.txt", "fine_labels", 2)

Part = tuple[np.ndarray, np.ndarray]


def parse(layout: Layout, path: Path, progress: bool) -> Source:
    """Read either form of the archive: the binary one is known by its .bin members."""
    stored: dict[str, bytes] = {}
    wanted = (*_both(layout.train), *_both(layout.test), layout.meta, layout.names_file)
    for name, content in members(path, progress=progress):
        base = PurePosixPath(name).name
        if any(fnmatchcase(base, pattern) for pattern in wanted):
            if base in stored:
                raise ValueError(f"{path.name} has two members called {base}: {ADVICE}")
            stored[base] = content
    form = (Binary if any(name.endswith(Binary.suffix) for name in stored) else Python)(layout, stored)
    return Source(*form.parts(layout.train), *form.parts(layout.test), class_names=form.class_names())


def _both(pattern: str) -> tuple[str, str]:
    return pattern, f"{pattern}.bin"


def _pictures(flat: np.ndarray) -> np.ndarray:
    """Rows of 1024 red, 1024 green, 1024 blue → NHWC."""
    return flat.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)


@dataclass(frozen=True)
class Form(ABC):
    """The members of one archive, and how to read them."""

    layout: Layout
    stored: dict[str, bytes]
    suffix: ClassVar[str]

    def parts(self, pattern: str) -> Part:
        """Pictures and labels of all members that match, in order."""
        names = sorted(name for name in self.stored if fnmatchcase(name, pattern + self.suffix))
        if not names:
            self.member(pattern + self.suffix)
        pictures, labels = zip(*map(self.part, names), strict=True)
        return np.concatenate(pictures), np.concatenate(labels)

    def member(self, name: str) -> bytes:
        """The content of a member that must be there."""
        if name not in self.stored:
            raise ValueError(f"the archive has no member {name}: {ADVICE}")
        return self.stored[name]

    @abstractmethod
    def part(self, name: str) -> Part:
        """Pictures and labels of one member."""

    @abstractmethod
    def class_names(self) -> tuple[str, ...]:
        """The official names."""


class Binary(Form):
    """Fixed records: label bytes, then pixels."""

    suffix = ".bin"

    def part(self, name: str) -> Part:
        """Cut a member into records."""
        content, ahead = self.member(name), self.layout.label_bytes
        if len(content) % (ahead + PIXELS):
            raise ValueError(f"{name} has {len(content):,} bytes, no multiple of {ahead + PIXELS}: {ADVICE}")
        rows = np.frombuffer(content, dtype=np.uint8).reshape(-1, ahead + PIXELS)
        return _pictures(rows[:, ahead:]), rows[:, ahead - 1]

    def class_names(self) -> tuple[str, ...]:
        """One name a line."""
        return tuple(self.member(self.layout.names_file).decode("latin-1").split())


class Python(Form):
    """Pickled dictionaries, read without unpickling."""

    suffix = ""

    def part(self, name: str) -> Part:
        """The arrays of a batch."""
        batch = self._values(name)
        data, labels = batch.get("data"), batch.get(self.layout.labels)
        if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (PIXELS,):
            raise ValueError(f"{name} has no uint8 data of {PIXELS} columns: {ADVICE}")
        if not isinstance(labels, list) or not all(isinstance(label, int) and 0 <= label < 256 for label in labels):
            raise ValueError(f"{name} has no list of labels called {self.layout.labels}: {ADVICE}")
        return _pictures(data), np.array(labels, dtype=np.int64)

    def class_names(self) -> tuple[str, ...]:
        """The list in the meta member."""
        names = self._values(self.layout.meta).get(self.layout.names)
        if not isinstance(names, list) or not all(isinstance(name, str | bytes) for name in names):
            raise ValueError(f"{self.layout.meta} has no list of names called {self.layout.names}: {ADVICE}")
        return tuple(text_of(name) for name in names)

    def _values(self, name: str) -> dict[str, Any]:
        try:
            values = inert_pickle.loads(self.member(name))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        if not isinstance(values, dict):
            raise ValueError(f"{name} holds no dictionary: {ADVICE}")
        return {text_of(key): value for key, value in values.items() if isinstance(key, str | bytes)}


HOME = "https://www.cs.toronto.edu/~kriz"
CIFAR10 = Published(
    "CIFAR-10, 50,000 + 10,000 colour 32x32 pictures of 10 things",
    (
        Address(
            f"{HOME}/cifar-10-python.tar.gz", "sha256:6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"
        ),
        Address(f"{HOME}/cifar-10-binary.tar.gz", "md5:c32a1d4ab5d03f1284b67883e8d87530"),
    ),
    partial(parse, TEN),
)
CIFAR100 = Published(
    "CIFAR-100, 50,000 + 10,000 colour 32x32 pictures of 100 things",
    (
        Address(
            f"{HOME}/cifar-100-python.tar.gz", "sha256:85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"
        ),
        Address(f"{HOME}/cifar-100-binary.tar.gz", "md5:03b5dce01913d631647c71ecec9e9cb8"),
    ),
    partial(parse, HUNDRED),
)
