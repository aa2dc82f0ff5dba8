"""Draw private, validation, public and test: seeded, stratified by class, groups and duplicates kept together."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attcem.data.collect import Pictures
from attcem.data.duplicates import duplicate_groups, join_groups
from attcem.data.source import Source
from attcem.types import Images
from attcem.types.mapped import MEMORY, Chosen

PARTITIONS = ("private", "validation", "public", "test")

Indices = dict[str, np.ndarray]  # partition → positions in the source, training images first, then test images


@dataclass(frozen=True)
class Data:
    """A data set in four disjoint parts: the defender's own, its validation, the attacker's, and the judge's."""

    name: str
    private: Images
    validation: Images
    public: Images
    test: Images
    class_names: tuple[str, ...]
    draw: dict[str, Any]
    """How it was drawn, for the record: seed, fractions, sizes, duplicates, dropped images, sha256 of the indices."""
    strangers: Images | None = None
    """Pictures of classes that are in no other part: the judge learns from them to tell people apart."""

    @property
    def classes(self) -> int:
        return len(self.class_names)

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.private.shape


def partition(
    source: Source,
    name: str,
    *,
    seed: int = 0,
    public: float = 0.25,
    validation: float = 0.1,
    test: float = 0.2,
    cache: Path | None = None,
    memory: int = MEMORY,
    given: Mapping[str, Pictures] | None = None,
) -> Data:
    """Draw the four parts; a `given` one, as an official test set, stays as it is, the others are shares of the rest.

    `test` is the share of the training images drawn for it, `public` that of what remains, for the attacker,
    `validation` that of what then remains. Exact and near duplicates stay on one side: images that match one of a
    given part are dropped. The folder `cache` keeps which images are duplicates, as the search takes time.
    """
    fixed = given_parts(source, given or {})
    fractions = {"test": test, "public": public, "validation": validation}
    for key, fraction in fractions.items():
        if not 0 < fraction < 1:
            raise ValueError(f"{key}={fraction} is not between 0 and 1: give a share, such as {key}=0.2")
    if seed < 0:
        raise ValueError(f"seed={seed} is negative: give 0 or more")
    arrays = [source.x_train, *(part.x for part in fixed.values())]
    labels = np.concatenate([source.y_train, *(part.y for part in fixed.values())])
    found = duplicate_groups(arrays, labels, cache)
    sizes = {key: len(part.y) for key, part in fixed.items()}
    indices, dropped = draw(source.y_train, _unite(found, source.group), sizes, seed, fractions)
    for key in PARTITIONS:
        if not len(indices[key]):
            raise ValueError(
                f"{name}: the {key} part would be empty: give more images per class that are no duplicates of each "
                "other, or another share for it"
            )
    record = {
        "seed": seed,
        "fractions": fractions | dict.fromkeys(fixed),
        "sizes": {key: len(indices[key]) for key in PARTITIONS},
        "duplicates": int((np.bincount(found)[found] > 1).sum()),
        "dropped": dropped,
        "sha256": fingerprint(indices),
    }
    # what does not fit in memory as a whole must not fill it in parts
    room = memory if sum(x.nbytes for x in arrays) <= memory else 0
    pixels = {key: torch.from_numpy(Chosen(arrays, index).copy(room)) for key, index in indices.items()}
    parts = {key: Images(x, torch.from_numpy(labels[indices[key]]), memory) for key, x in pixels.items()}
    return Data(name=name, **parts, class_names=source.class_names, draw=record)


def given_parts(source: Source, given: Mapping[str, Pictures]) -> dict[str, Pictures]:
    """What is not drawn: the source's own test set, and the parts that a user gives; images of one size."""
    official = {}
    if source.x_test is not None and source.y_test is not None:
        official["test"] = Pictures(source.x_test, source.y_test)
    for key, part in given.items():
        if part.x.shape[1:] != source.x_train.shape[1:]:
            sizes = f"{part.x.shape[1:]}, the training images {source.x_train.shape[1:]}"
            raise ValueError(f"{key} has images of {sizes}: resize one of them so that they agree")
    return official | {key: given[key] for key in ("validation", "public") if key in given}


def draw(
    labels: np.ndarray, group: np.ndarray | None, given: Mapping[str, int], seed: int, fractions: dict[str, float]
) -> tuple[Indices, int]:
    """Indices of each part, in random order, and how many images were dropped; `given` are sizes of parts not drawn.

    One random key per image orders everything. The key of a group is that of its first image, its class that
    image's label. Each class is a row of groups ordered by key and cut into test | public | validation | private.
    Raw PCG64 bits are used because numpy promises them for ever, which it does not for its shuffles. What was given
    stays as it is, but for duplicates of a part given before it.
    """
    count = len(labels)
    keys = np.random.PCG64(seed).random_raw(count)
    group = np.arange(count + sum(given.values())) if group is None else group
    indices, start = dict[str, np.ndarray](), count
    for key, size in given.items():
        whole = np.arange(start, start + size)
        indices[key] = whole[~np.isin(group[whole], group[count:start])]
        start += size
    kept = np.flatnonzero(~np.isin(group[:count], group[count:]))
    names = [key for key in ("test", "public", "validation") if key not in given]
    _, first, member_of = np.unique(group[kept], return_index=True, return_inverse=True)
    sizes, strata, order = np.bincount(member_of), labels[kept][first], keys[kept][first]
    piece_of = np.empty(len(sizes), dtype=np.int64)
    for stratum in np.unique(strata):
        row = np.flatnonzero(strata == stratum)
        row = row[np.argsort(order[row], kind="stable")]
        piece_of[row] = cut(sizes[row], [fractions[key] for key in names])
    shuffled = np.argsort(keys[kept], kind="stable")
    pieces = piece_of[member_of][shuffled]
    indices |= {key: kept[shuffled[pieces == piece]] for piece, key in enumerate([*names, "private"])}
    return indices, start - sum(map(len, indices.values()))


def _unite(found: np.ndarray, given: np.ndarray | None) -> np.ndarray:
    """The groups of duplicates, united where images of two of them share a given group."""
    if given is None:
        return found
    _, first, same = np.unique(given, return_index=True, return_inverse=True)
    everyone = np.arange(len(found))
    pairs = np.stack([everyone[: len(given)], first[same]], axis=1)
    return join_groups(len(found), np.stack([everyone, found], axis=1), pairs)


def cut(sizes: np.ndarray, shares: Sequence[float]) -> np.ndarray:
    """Cut a row of groups into consecutive pieces, each as near as it can be to its share of what remains.

    Every piece gets at least one group as long as one can be left for each of the later pieces.

    >>> cut(np.ones(10, dtype=int), [0.2, 0.5])
    array([0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    """
    piece_of, start = np.full(len(sizes), len(shares)), 0
    for piece, share in enumerate(shares):
        rest = np.cumsum(sizes[start:])
        most = len(rest) - (len(shares) - piece)
        if most > 0:
            taken = 1 + int(np.argmin(np.abs(rest[:most] - share * rest[-1])))
            piece_of[start : start + taken] = piece
            start += taken
    return piece_of


def fingerprint(indices: Indices) -> str:
    total = hashlib.sha256()
    for key in PARTITIONS:
        total.update(f"{key} {len(indices[key])}\n".encode() + np.sort(indices[key]).astype("<i8").tobytes())
    return total.hexdigest()
