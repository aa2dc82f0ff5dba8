"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009), from their python or binary archive."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from attcem.data import inert_pickle
from attcem.data.archive import members
from attcem.data.entry import Published
from attcem.data.inert_pickle import text_of
from attcem.data.source import Source

HOME = "https://www.cs.toronto.edu/~kriz"
PIXELS = 3 * 32 * 32
ADVICE = "get the archive from its official address"


@dataclass(frozen=True)
class Layout:
    """How one of the two archives calls its parts."""

    train: str
    test: str
    meta: str
    names: str  # key of the class names in the python form's meta
    names_file: str  # file of the class names in the binary form
    labels: str
    label_bytes: int  # bytes before the pixels of a binary record; the last one is the label we want


TEN = Layout("data_batch_*", "test_batch", "batches.meta", "label_names", "batches.meta.txt", "labels", 1)
HUNDRED = Layout("train", "test", "meta", "fine_label_names", "fine_label_names.txt", "fine_labels", 2)

Part = tuple[np.ndarray, np.ndarray]


class Stored(dict[str, bytes]):
    """The members of an archive by name; all that are asked for must be there."""

    def __missing__(self, name: str) -> bytes:
        raise ValueError(f"the archive has no member {name}: {ADVICE}")


def parse(layout: Layout, path: Path, progress: bool) -> Source:
    """Read either form of the archive: the binary one is known by its .bin members."""
    stored = Stored()
    for name, content in members(path, progress=progress):
        base = PurePosixPath(name).name
        batch = any(fnmatchcase(base.removesuffix(".bin"), pattern) for pattern in (layout.train, layout.test))
        if batch or base in (layout.meta, layout.names_file):
            if base in stored:
                raise ValueError(f"{path.name} has two members called {base}: {ADVICE}")
            stored[base] = content
    if any(name.endswith(".bin") for name in stored):
        parts = *_parts(layout, stored, f"{layout.train}.bin"), *_parts(layout, stored, f"{layout.test}.bin")
        return Source(*parts, class_names=tuple(stored[layout.names_file].decode("latin-1").split()))
    parts = *_parts(layout, stored, layout.train), *_parts(layout, stored, layout.test)
    names = _pickled(stored, layout.meta).get(layout.names)
    if not isinstance(names, list) or not all(isinstance(name, str | bytes) for name in names):
        raise ValueError(f"{layout.meta} has no list of names called {layout.names}: {ADVICE}")
    return Source(*parts, class_names=tuple(map(text_of, names)))


def _parts(layout: Layout, stored: Stored, pattern: str) -> Part:
    read = _binary_part if pattern.endswith(".bin") else _pickled_part
    names = sorted(name for name in stored if fnmatchcase(name, pattern)) or [pattern]
    pictures, labels = zip(*(read(layout, stored, name) for name in names), strict=True)
    # rows of 1024 red, 1024 green, 1024 blue → NHWC
    return np.concatenate(pictures).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), np.concatenate(labels)


def _binary_part(layout: Layout, stored: Stored, name: str) -> Part:
    content, ahead = stored[name], layout.label_bytes
    if len(content) % (ahead + PIXELS):
        raise ValueError(f"{name} has {len(content):,} bytes, no multiple of {ahead + PIXELS}: {ADVICE}")
    rows = np.frombuffer(content, dtype=np.uint8).reshape(-1, ahead + PIXELS)
    return rows[:, ahead:], rows[:, ahead - 1]


def _pickled_part(layout: Layout, stored: Stored, name: str) -> Part:
    batch = _pickled(stored, name)
    data, labels = batch.get("data"), batch.get(layout.labels)
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.shape[1:] != (PIXELS,):
        raise ValueError(f"{name} has no uint8 data of {PIXELS} columns: {ADVICE}")
    if not isinstance(labels, list) or not all(isinstance(label, int) and 0 <= label < 256 for label in labels):
        raise ValueError(f"{name} has no list of labels called {layout.labels}: {ADVICE}")
    return data, np.array(labels, dtype=np.int64)


def _pickled(stored: Stored, name: str) -> dict[str, Any]:
    content = stored[name]
    try:
        values = inert_pickle.loads(content)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"{name} holds no dictionary: {ADVICE}")
    return {text_of(key): value for key, value in values.items() if isinstance(key, str | bytes)}


CIFAR10 = Published(
    "CIFAR-10, 50,000 + 10,000 colour 32x32 pictures of 10 things",
    {
        f"{HOME}/cifar-10-python.tar.gz": "sha256:6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        f"{HOME}/cifar-10-binary.tar.gz": "md5:c32a1d4ab5d03f1284b67883e8d87530",
    },
    partial(parse, TEN),
)
CIFAR100 = Published(
    "CIFAR-100, 50,000 + 10,000 colour 32x32 pictures of 100 things",
    {
        f"{HOME}/cifar-100-python.tar.gz": "sha256:85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
        f"{HOME}/cifar-100-binary.tar.gz": "md5:03b5dce01913d631647c71ecec9e9cb8",
    },
    partial(parse, HUNDRED),
)
