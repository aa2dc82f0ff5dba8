"""Coordinates in which features do not correlate, and groups in which they are alike."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from attcem.maths import moments, widen
from attcem.maths.kmeans import kmeans, nearest

CLUSTERS, PER_CLUSTER = 20, 50  # clusters that are looked for where there are enough samples for each
SKETCH = 128
"""Random projections that stand for a sample of more features while clustering: distances keep within a tenth."""
AT_ONCE = 1024


def principal_axes(
    rows: Float[Tensor, "n t c"], group: Int64[Tensor, " n"], groups: int, *, alike: bool = False
) -> Float[Tensor, "s c c"]:
    """Principal axes of the deviations inside the groups, as columns, widest first: for each token, or for all alike.

    Turned this way the features do not correlate, and the variances along the axes are all that is left to find. Found
    on other samples, they are those of nonlinear shrinkage (Lam, Annals of Statistics 44, 2016): never singular,
    however few the samples.
    """
    mu = moments(rows.flatten(1), group, groups).mu[:, 0].reshape(groups, *rows.shape[1:])
    n, c = len(rows) * (rows.shape[1] if alike else 1), rows.shape[2]

    def deviations(part: slice) -> Float[Tensor, "s m c"]:
        apart = widen(rows[part] - mu[group[part]])
        return apart.reshape(1, -1, c) if alike else apart.transpose(0, 1)

    if n >= c // 2:
        total = widen(rows.new_zeros(1 if alike else rows.shape[1], c, c))
        for start in range(0, len(rows), AT_ONCE):
            apart = deviations(slice(start, start + AT_ONCE))
            total += apart.transpose(1, 2) @ apart
        return torch.linalg.eigh(total).eigenvectors.flip(-1)
    # Few samples span few axes: those are turned among themselves, the others only need to stand upright on them.
    basis, inside = torch.linalg.qr(deviations(slice(None)).transpose(1, 2), mode="complete")
    inside = inside[:, :n]
    turn = torch.linalg.eigh(inside @ inside.transpose(1, 2)).eigenvectors.flip(-1)
    return torch.cat([basis[..., :n] @ turn, basis[..., n:]], -1)


def along(rows: Float[Tensor, "n t c"], axes: Float[Tensor, "s c c"]) -> Float[Tensor, "n d"]:
    """Every token in the coordinates of its axes: a rotation, which leaves Gaussian noise as it is."""
    return torch.cat([(widen(some).transpose(0, 1) @ axes).transpose(0, 1).flatten(1) for some in rows.split(AT_ONCE)])


def clusters(rows: Float[Tensor, "n d"], seed: int) -> tuple[Int64[Tensor, " n"], int]:
    """Groups of samples that lie near each other, by k-means, and how many there are."""
    count = max(1, min(CLUSTERS, len(rows) // PER_CLUSTER))
    everyone = torch.zeros(len(rows), dtype=torch.int64, device=rows.device)
    generator = torch.Generator().manual_seed(seed)
    if rows.shape[1] > SKETCH:
        rows = rows @ torch.randn(rows.shape[1], SKETCH, generator=generator).to(rows)
    return nearest(rows, everyone, kmeans(rows, everyone, 1, k=count, iters=20, generator=generator).mu), count
