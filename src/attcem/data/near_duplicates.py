"""Find pairs of pictures made from one photograph: re-compressed, brightened, or shifted by a pixel or two.

Pairs whose thumbnails lie close together are searched first. Of these, the ones are kept whose fine detail correlates
far better than that of two pictures of one class does, so that neither a silhouette nor a face that many pictures
share makes them duplicates.
"""

from collections.abc import Callable
from itertools import product

import numpy as np
import torch
from torch.nn.functional import adaptive_avg_pool2d, avg_pool2d, normalize, pad

from attcem.types.mapped import Chosen, blocks

RECIPE = 1  # rises with every change that may find other pairs
GRID, SIDE = 8, 32  # pixels along a side of a thumbnail, and at most of the picture in which detail is compared
CLOSE_AXES, SHARED_AXES = 32, 64
"""Principal axes in which thumbnails are compared, and those of detail that are left out as shared by many pictures."""
REFERENCES = 2000  # so many pictures, evenly spread, stand for the data set where all of them would take long
NEAR = 0.5  # two thumbnails are close at this share of the distance to the edge of their surroundings
FLAT = 2.0  # thumbnails that deviate by fewer grey levels show nothing that could be compared
NOISE = 5.0  # grey levels of deviation that compression alone may cause
WINDOW, SHIFT = 5, 2  # pixels around each one that detail is measured against, and by which copies may be shifted
PAIRS, DEVIATIONS = 400, 10
"""Random pairs of a class; detail must correlate by so many deviations above their median, within the bounds below."""
LEAST, ENOUGH = 0.5, 0.9
BLOCK = 1024  # rows, or pairs, handled at a time


def near_pairs(images: np.ndarray | Chosen, labels: np.ndarray) -> np.ndarray:
    """Positions (first, second) of near-duplicates among NHWC uint8 pictures, whatever their labels."""
    close = close_pairs(images)
    if not len(close):
        return close.numpy()
    details = _by_blocks(detail, images)
    leave_out_shared(details)
    return close[correlations(details, close) >= least_correlation(details, labels)].numpy()


def close_pairs(images: np.ndarray | Chosen) -> torch.Tensor:
    """Pairs whose whitened thumbnails are far closer to each other than either is to most of its surroundings.

    The surroundings reach as far as the nearest hundredth of the references, and not less than the ten nearest.
    """
    thumbs = _by_blocks(thumbnails, images)
    distinct = torch.nonzero(thumbs.square().mean(dim=1).sqrt() > FLAT)[:, 0]
    if len(distinct) < 2:
        return torch.empty(0, 2, dtype=torch.long)
    rows = whiten(normalize(thumbs[distinct], eps=1e-9))
    references = rows[:: _stride(rows)]
    rank = min(max(10, len(references) // 100), len(references))
    edge = torch.cat([(block @ references.T).topk(rank).values[:, -1] for block in rows.split(BLOCK)])
    return distinct[pairs_above(rows, 1 - NEAR * (1 - edge))]


def thumbnails(images: torch.Tensor) -> torch.Tensor:
    """Block means of a grid, less the mean of each channel, as one row per picture."""
    small = adaptive_avg_pool2d(images, GRID)
    return (small - small.mean(dim=(2, 3), keepdim=True)).flatten(1)


def whiten(rows: torch.Tensor) -> torch.Tensor:
    """Rows in their principal axes, each axis scaled to the same variance, then each row to length one.

    Few pictures have few axes: with as many axes as pictures, every two of them would look different.
    """
    centred = rows - rows.mean(dim=0)
    variances, axes = torch.linalg.eigh((centred.T @ centred / len(rows)).double())
    count = max(2, min(CLOSE_AXES, len(rows) // 8))
    scaled = axes[:, -count:] / variances[-count:].clamp(min=1e-9).sqrt()
    return normalize(centred @ scaled.float(), eps=1e-9)


def pairs_above(rows: torch.Tensor, least: torch.Tensor) -> torch.Tensor:
    """Every (i, j) with i < j whose product reaches what both rows ask for at least."""
    found = []
    for start in range(0, len(rows), BLOCK):
        for other in range(start, len(rows), BLOCK):
            products = rows[start : start + BLOCK] @ rows[other : other + BLOCK].T
            here, there = torch.nonzero(products >= least[start : start + BLOCK, None]).T
            wanted = (here + start < there + other) & (products[here, there] >= least[there + other])
            found.append(torch.stack([here[wanted] + start, there[wanted] + other], dim=1))
    return torch.cat(found)


def detail(images: torch.Tensor) -> torch.Tensor:
    """Grey levels less the mean of the window around them, over the deviation in the window plus that of noise."""
    grey = images.mean(dim=1, keepdim=True)
    _, _, height, width = grey.shape
    grey = adaptive_avg_pool2d(grey, (min(height, SIDE), min(width, SIDE)))
    fine = grey - _window_mean(grey)
    return (fine / (_window_mean(fine.square()).sqrt() + NOISE))[:, 0]


def leave_out_shared(details: torch.Tensor) -> None:
    """Take the mean and the first principal axes out of the details, and scale each to length one, in place."""
    rows = details.flatten(1)
    references = rows[:: _stride(rows)].double()
    mean = references.mean(dim=0)
    _, axes = torch.linalg.eigh((references - mean).T @ (references - mean))
    shared = axes[:, rows.shape[1] - min(SHARED_AXES, len(references) // 32) :].float()
    for block in rows.split(BLOCK):
        block -= mean.float()
        block -= (block @ shared) @ shared.T
        block /= block.norm(dim=1, keepdim=True).clamp(min=1e-6)


def least_correlation(details: torch.Tensor, labels: np.ndarray) -> float:
    """What the detail of near-duplicates correlates by at least, from random pairs of the class that is most alike."""
    numbers = np.random.RandomState(0)
    least = LEAST
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        drawn = members[numbers.randint(len(members), size=(PAIRS, 2))]
        drawn = drawn[drawn[:, 0] != drawn[:, 1]]
        if len(drawn):
            median, high = np.quantile(correlations(details, torch.from_numpy(drawn)), [0.5, 0.9])
            least = max(least, median + DEVIATIONS * (high - median) / 1.2816)
    return min(least, ENOUGH)


def correlations(details: torch.Tensor, pairs: torch.Tensor) -> torch.Tensor:
    """The largest product of each pair's details over small shifts of one picture against the other."""
    shifts, best = list(product(range(-SHIFT, SHIFT + 1), repeat=2)), []
    for first, second in (details[chunk.T] for chunk in pairs.split(BLOCK // 4)):
        overlaps = ((_overlap(first, down, right), _overlap(second, -down, -right)) for down, right in shifts)
        best.append(torch.stack([(a * b).sum(dim=(1, 2)) for a, b in overlaps]).amax(dim=0))
    return torch.cat(best)


def _overlap(images: torch.Tensor, down: int, right: int) -> torch.Tensor:
    _, height, width = images.shape
    return images[:, max(down, 0) : height + min(down, 0), max(right, 0) : width + min(right, 0)]


def _window_mean(images: torch.Tensor) -> torch.Tensor:
    return avg_pool2d(pad(images, [WINDOW // 2] * 4, mode="replicate"), WINDOW, stride=1)


def _stride(rows: torch.Tensor) -> int:
    return -(-len(rows) // REFERENCES)


def _by_blocks(function: Callable[[torch.Tensor], torch.Tensor], images: np.ndarray | Chosen) -> torch.Tensor:
    """One array made once, as a list of the blocks' results would need twice the memory."""

    def of(rows: slice) -> torch.Tensor:
        return function(torch.from_numpy(images[rows].astype(np.float32)).permute(0, 3, 1, 2))

    results = torch.empty(len(images), *of(slice(1)).shape[1:])
    for rows in blocks(images):
        results[rows] = of(rows)
    return results
