"""Group the pictures that are one and the same, exactly or nearly; what a search found is kept in the cache."""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from attcem.data.near_duplicates import RECIPE, near_pairs
from attcem.files import replacing
from attcem.reading.arrays import read_arrays
from attcem.types.mapped import Chosen


def duplicate_groups(parts: Sequence[np.ndarray], labels: np.ndarray, cache: Path | None = None) -> np.ndarray:
    """One number per picture of all parts in turn: the position of the first picture that it equals or resembles."""
    digests = np.array([hashlib.blake2b(image, digest_size=16).digest() for part in parts for image in part], "V16")
    key = hashlib.sha256(f"{RECIPE} {parts[0].shape[1:]}\n".encode() + digests.tobytes()).hexdigest()
    file = cache / "duplicates" / f"{key[:32]}.npz" if cache else None
    known = _read(file, len(digests)) if file else None
    if known is not None:
        return known
    _, first, same = np.unique(digests, return_index=True, return_inverse=True)
    distinct = np.sort(first)
    near = distinct[near_pairs(Chosen(parts, distinct), labels[distinct])]
    groups = join_groups(len(digests), np.stack([np.arange(len(digests)), first[same]], axis=1), near)
    if file:
        with suppress(OSError), replacing(file) as opened:  # without it the next load only takes longer
            np.savez_compressed(opened, groups=groups)
    return groups


def join_groups(count: int, *pairs: np.ndarray) -> np.ndarray:
    """The first position of each group when the two positions of every pair belong together.

    >>> join_groups(5, np.array([[4, 1]]), np.array([[1, 3]]))
    array([0, 1, 2, 1, 1])
    """
    first, second = np.concatenate(pairs).T
    groups, before = np.arange(count), np.full(count, -1)
    while not np.array_equal(groups, before):
        before = groups.copy()
        np.minimum.at(groups, first, before[second])
        np.minimum.at(groups, second, before[first])
        groups = groups[groups]
    return groups


def _read(file: Path, count: int) -> np.ndarray | None:
    try:
        groups = read_arrays(file, 8 * count + 10_000)["groups"]
    except (OSError, ValueError, KeyError):
        return None
    possible = groups.dtype == np.int64 and groups.shape == (count,) and groups.min() >= 0
    return groups if possible and (groups <= np.arange(count)).all() and (groups[groups] == groups).all() else None
