"""How much there is to know about an image: its differential entropy, estimated from above."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from attcem.maths import entropy
from attcem.metrics.axes import along, clusters, principal_axes
from attcem.metrics.gaussians import Mixture, fit_full, parts
from attcem.metrics.image import Pictures

ROUNDING = 1 / (math.sqrt(12) * 255)
"""Standard deviation of what rounding to 8 bits hides: images count as what they were before, or had no entropy."""
WHOLE, TILE = 3072, 768
"""Numbers of an image that is taken whole (32×32×3), and of the tiles that a larger one is cut into."""


@dataclass(frozen=True)
class Prior:
    """What an attacker is assumed to know of images: a few Gaussians, each with axes and variances.

    Entropies are those of Gaussians as wide as other images are along the axes: but for sampling, never below the
    images' own.
    """

    tile: tuple[int, int]
    axes: Float[Tensor, "t v v"]
    order: Int64[Tensor, " d"]
    mean: Float[Tensor, "c h w"]
    mixture: Mixture
    share: Float[Tensor, " k"]  # of the images, how many belong to each Gaussian
    entropy: Float[Tensor, "k d"]  # in nats, along each axis of each Gaussian, of the images that belong to it

    @property
    def total(self) -> float:
        """h(x) = h(x|K) + H(K) in nats, K being the Gaussian that an image belongs to."""
        return (self.share @ self.entropy.sum(1) + entropy(self.share)).item()

    def along(self, images: Pictures) -> Float[Tensor, "n d"]:
        """Differences of images in the coordinates that all Gaussians share."""
        return along(tiles(images, self.tile), self.axes)[:, self.order]

    def turned(self, apart: Pictures, owner: Int64[Tensor, " n"]) -> Float[Tensor, "n d"]:
        """Differences of images along the axes of the Gaussian that each belongs to."""
        shared = self.along(apart)
        found = torch.empty_like(shared)
        for k in owner.unique().tolist():
            found[owner == k] = self.mixture.turned(shared[owner == k], k)
        return found

    @property
    def how(self) -> str:
        cut = "whole images" if len(self.axes) == 1 else f"{len(self.axes)} tiles of {self.tile[0]}×{self.tile[1]}"
        kinds = f"{len(self.share)} Gaussians" if len(self.share) > 1 else "one Gaussian"
        return f"{cut} as {kinds}, judged on held-out images: an over-estimate"


@torch.no_grad()
def image_prior(images: Pictures, *, seed: int = 0) -> Prior:
    """The better of one Gaussian and a cluster of them; tiles of large images count as independent."""
    part, tile = parts(len(images), seed), tile_size(*images.shape[1:])
    mean, found = images[part.fit].mean(0), len(part.axes)
    rows = tiles(images - mean, tile)
    together = torch.zeros(len(part.fit), dtype=torch.int64, device=images.device)
    axes = principal_axes(rows[part.axes], together[:found], 1)
    fitted, judged = along(rows[part.fit], axes), along(rows[part.judge], axes)
    order = fitted[found:].square().sum(0).argsort(descending=True)
    fitted, judged = fitted[:, order], judged[:, order]
    grouped = ((together, 1), clusters(fitted, seed))
    mixtures = (fit_full(fitted, group, groups, found, ROUNDING) for group, groups in grouped)
    mixture = min(mixtures, key=lambda mixture: mixture.nats(judged, ROUNDING).mean().item())
    return Prior(tile, axes, order, mean, mixture, *entropies(mixture, judged))


def entropies(mixture: Mixture, rows: Float[Tensor, "n d"]) -> tuple[Float[Tensor, " k"], Float[Tensor, "k d"]]:
    """How many samples belong to each Gaussian, and ½ log 2πe σ², σ² being their spread along its axes.

    By how much that differs from the fitted one is averaged over the Gaussians: each alone would have few samples.
    """
    var = mixture.var + ROUNDING**2
    owner = mixture.surprise(rows, ROUNDING).argmin(1)
    ratio = torch.zeros_like(var[0])
    for k in range(len(var)):
        ratio += ((mixture.turned(rows[owner == k] - mixture.mu[k], k).square() + ROUNDING**2) / var[k]).sum(0)
    share = owner.bincount(minlength=len(var)).to(var) / len(rows)
    return share, 0.5 * torch.log(2 * math.pi * math.e * var * ratio / len(rows))


def tile_size(c: int, h: int, w: int) -> tuple[int, int]:
    """Height and width of the largest tile that divides the image evenly and is not too large, squarest first."""
    if c * h * w <= WHOLE:
        return h, w
    divisors = [(a, b) for a in range(1, h + 1) if h % a == 0 for b in range(1, w + 1) if w % b == 0]
    small = [(a, b) for a, b in divisors if c * a * b <= TILE] or [(1, 1)]
    return max(small, key=lambda size: (size[0] * size[1], -abs(size[0] - size[1])))


def tiles(images: Pictures, tile: tuple[int, int]) -> Float[Tensor, "n t v"]:
    (n, c, h, w), (a, b) = images.shape, tile
    cut = images.reshape(n, c, h // a, a, w // b, b).permute(0, 2, 4, 1, 3, 5)
    return cut.reshape(n, (h // a) * (w // b), c * a * b)
