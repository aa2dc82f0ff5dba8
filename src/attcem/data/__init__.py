"""Data sets: one file each, and one line in the table below; every one is drawn into four disjoint parts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attcem.data.cifar import CIFAR10, CIFAR100
from attcem.data.clutter import CLUTTER
from attcem.data.collect import collect, number_classes
from attcem.data.entry import Entry, Given
from attcem.data.facescrub import FACESCRUB
from attcem.data.fashion import FASHION
from attcem.data.imagefolder import IMAGEFOLDER
from attcem.data.orl import ORL
from attcem.data.partitions import Data, partition
from attcem.data.source import Source
from attcem.data.strangers import partition_people
from attcem.data.tinyimagenet import TINYIMAGENET
from attcem.files import default_root
from attcem.naming import look_up
from attcem.types.mapped import MEMORY

__all__ = ["DATASETS", "Data", "default_root", "find_entry", "get_data", "load_data", "make_data"]

DATASETS: dict[str, Entry] = {
    "fashion": FASHION,
    "clutter": CLUTTER,
    "cifar10": CIFAR10,
    "cifar100": CIFAR100,
    "tinyimagenet": TINYIMAGENET,
    "facescrub": FACESCRUB,
    "orl": ORL,
    "imagefolder": IMAGEFOLDER,
    "npz": Given(
        "your own arrays, npz:PATH with uint8 x_train, y_train and perhaps x_test, y_test, group", Source.read
    ),
}


def find_entry(name: str) -> Entry:
    """The table's entry for a name up to its colon; a path without one is told which to put before it."""
    kind = "npz" if name.endswith(".npz") else "imagefolder" if Path(name).is_dir() else None
    if kind and ":" not in name and name not in DATASETS:
        raise ValueError(f"unknown data set {name!r}: for data of your own, write {kind}:{name}")
    return look_up("data set", name.partition(":")[0], DATASETS)


def load_data(
    name: str,
    *,
    root: str | Path | None = None,
    seed: int = 0,
    public: float = 0.25,
    validation: float = 0.1,
    test: float = 0.2,
    strangers: bool = False,
    memory: int = MEMORY,
) -> Data:
    """Load a data set of the table, or npz:PATH or imagefolder:PATH, in its four parts; the seed decides the draw.

    With `strangers` whole classes are dealt, such as people: the attacker's are none of the device's, `public` then
    being all of them. Pictures that exceed `memory` bytes lie in a temporary file on disk, read as needed.
    """
    key, _, path = name.partition(":")
    root = Path(root or default_root()).expanduser()
    entry = find_entry(name)
    if path and not isinstance(entry, Given):
        raise ValueError(f"{key} takes no path: type {key!r}, or npz:PATH or imagefolder:PATH for your own data")
    found = entry.read(key, path, root, memory)
    drawn: dict[str, Any] = {"seed": seed, "public": public, "validation": validation, "test": test}
    return (partition_people if strangers else partition)(found, name, **drawn, cache=root, memory=memory)


def make_data(
    train: Any,
    *,
    test: Any = 0.2,
    public: Any = 0.25,
    validation: Any = 0.1,
    group: Any = None,
    class_names: Sequence[str] = (),
    name: str = "own",
    seed: int = 0,
    memory: int = MEMORY,
) -> Data:
    """Data of your own in four parts: `train` is drawn into those that are shares, the others are used as given.

    Pictures come as `(images, labels)`, as a torch Dataset or DataLoader of such pairs, or as a Hugging Face dataset:
    uint8 or floats in [0,1], channels first or last. Classes are numbered anew where they have no names: labels 5, 7
    and 9 are three. `group`, one value per picture of `train`, keeps together what belongs together. Items are read one
    after another; pictures that exceed `memory` bytes lie in a temporary file on disk, read as needed.
    """
    shares = {"test": test, "public": public, "validation": validation}
    given = {key: value for key, value in shares.items() if not isinstance(value, int | float)}
    read = {key: collect(value, key, memory) for key, value in {"train": train, **given}.items()}
    parts, names = number_classes(read, class_names)
    drawn_from, held = parts.pop("train"), parts.pop("test", None)
    x_test, y_test = (None, None) if held is None else (held.x, held.y)
    together = None if group is None else np.asarray(group)
    source = Source(drawn_from.x, drawn_from.y, x_test, y_test, together, names)
    drawn = {key: float(value) for key, value in shares.items() if key not in given}
    return partition(source, name, seed=seed, cache=default_root(), memory=memory, given=parts, **drawn)


def get_data(
    name: str,
    *,
    root: str | Path | None = None,
    source: str | Path | None = None,
    checksum: str | None = None,
    progress: bool = True,
) -> Path:
    """Bring a data set into the cache, from its address or from the file `source`, and return its .npz file."""
    folder, given = Path(root or default_root()).expanduser(), None if source is None else Path(source).expanduser()
    return look_up("data set", name, DATASETS).get(name, folder, given, checksum, progress)
