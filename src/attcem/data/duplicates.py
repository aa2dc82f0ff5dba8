"""Find near-duplicates of the same person, so that they never end up on both sides of a split."""

import numpy as np

GRID = 16
THRESHOLD = 0.95


def near_duplicates(images: np.ndarray, labels: np.ndarray, threshold: float = THRESHOLD) -> np.ndarray:
    """A group id per image: images of one label whose 16x16 grey thumbnails correlate above the threshold.

    Groups are closed under chains: a like b and b like c puts all three together.
    """
    parents = np.arange(len(images))
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        vectors = thumbnails(images[members])
        alike = np.argwhere(np.triu(vectors @ vectors.T > threshold, k=1))
        for first, second in members[alike]:
            parents[_root(parents, second)] = _root(parents, first)
    return np.array([_root(parents, index) for index in range(len(images))], dtype=np.int64)


def thumbnails(images: np.ndarray) -> np.ndarray:
    """Grey block means of a 16x16 grid, each centred and of length one; flat images become zero."""
    n, height, width, _ = images.shape
    rows, columns = height // GRID, width // GRID
    grey = images[:, : rows * GRID, : columns * GRID].mean(axis=3)
    flat = grey.reshape(n, GRID, rows, GRID, columns).mean(axis=(2, 4)).reshape(n, -1)
    flat -= flat.mean(axis=1, keepdims=True)
    return flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-6)


def _root(parents: np.ndarray, index: int) -> int:
    while parents[index] != index:
        parents[index] = parents[parents[index]]
        index = parents[index]
    return index
