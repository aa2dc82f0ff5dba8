"""The cosine transform of square blocks, and the projection that removes some of its frequencies."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor


def cosines(n: int) -> Float[Tensor, "n n"]:
    """The orthonormal DCT-II: D_ki = √((2 − [k = 0]) / n) · cos(π (2i + 1) k / 2n)."""
    k, i = torch.meshgrid(torch.arange(n), torch.arange(n), indexing="ij")
    rows = torch.cos(math.pi * (2 * i + 1).double() * k / (2 * n)) * math.sqrt(2 / n)
    rows[0] /= math.sqrt(2)
    return rows


def zigzag(n: int) -> list[tuple[int, int]]:
    """The frequencies (vertical, horizontal) of an n×n block from low to high, in the order of JPEG.

    >>> zigzag(3)
    [(0, 0), (0, 1), (1, 0), (2, 0), (1, 1), (0, 2), (1, 2), (2, 1), (2, 2)]
    """
    every = [(v, h) for v in range(n) for h in range(n)]
    return sorted(every, key=lambda vh: (sum(vh), vh[0] if sum(vh) % 2 else vh[1]))


def block_filter(n: int, removed: Sequence[tuple[int, int]]) -> Float[Tensor, "m m"]:
    """P with P·vec(block) = the n×n block, row by row, without these frequencies: an orthogonal projection."""
    kept = torch.ones(n, n, dtype=torch.double)
    for frequency in removed:
        kept[frequency] = 0
    both = torch.kron(cosines(n), cosines(n))
    return both.T @ (kept.flatten()[:, None] * both)
