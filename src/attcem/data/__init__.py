"""Data sets: one file each, and one line in the table below; every one is drawn into four disjoint parts."""

import os
from pathlib import Path

from attcem.data.cifar import CIFAR10, CIFAR100
from attcem.data.entry import Entry, Given, Request
from attcem.data.facescrub import FACESCRUB
from attcem.data.fashion import FASHION
from attcem.data.imagefolder import IMAGEFOLDER
from attcem.data.orl import ORL
from attcem.data.partitions import Data, partition
from attcem.data.source import Source
from attcem.data.tinyimagenet import TINYIMAGENET
from attcem.naming import look_up

__all__ = ["DATASETS", "Data", "default_root", "get_data", "load_data"]

DATASETS: dict[str, Entry] = {
    "fashion": FASHION,
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


def default_root() -> Path:
    """Where data sets are kept: the environment's ATTCEM_DATA, or ~/.cache/attcem."""
    return Path(os.environ.get("ATTCEM_DATA") or "~/.cache/attcem").expanduser()


def load_data(
    name: str,
    *,
    root: str | Path | None = None,
    seed: int = 0,
    public: float = 0.25,
    validation: float = 0.1,
    test: float = 0.2,
) -> Data:
    """Load a data set of the table, or npz:PATH or imagefolder:PATH, in its four parts; the seed decides the draw."""
    key, _, path = name.partition(":")
    folder = _folder(root)
    source = look_up("data set", key, DATASETS).read(key, path, folder)
    return partition(source, name, seed=seed, public=public, validation=validation, test=test, cache=folder)


def get_data(
    name: str,
    *,
    root: str | Path | None = None,
    source: str | Path | None = None,
    checksum: str | None = None,
    progress: bool = True,
) -> Path:
    """Bring a data set into the cache, from its address or from the file `source`, and return its .npz file."""
    given = Path(source).expanduser() if source is not None else None
    return look_up("data set", name, DATASETS).get(Request(name, _folder(root), given, checksum, progress))


def _folder(root: str | Path | None) -> Path:
    return default_root() if root is None else Path(root).expanduser()
