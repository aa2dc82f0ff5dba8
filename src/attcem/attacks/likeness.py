"""How far latents are from others as a crowd, and whether pictures look like others."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor

from attcem.attacks.base import Pictures
from attcem.types import Released

DIRECTIONS, COMPONENTS = 32, 64
"""Random directions along which latents are compared; principal components of them that are compared as a whole."""


class Likeness:
    """Distance of released latents from observed ones: mean, sliced Wasserstein of neighbourhoods and of the whole."""

    def __init__(self, latents: Released) -> None:
        self.mean = latents.mean(0)
        within = [0, *range(2, latents.ndim)]
        self.std = (latents - self.mean).square().mean(within, keepdim=True)[0].sqrt().clamp_min(1e-6)
        flat = ((latents - self.mean) / self.std).flatten(1)
        _, size, axes = torch.pca_lowrank(flat, q=min(COMPONENTS, *flat.shape), center=False)
        # Divided by the root of its deviation, a component counts more than noise and less than its whole variance.
        self.axes = axes / (size / math.sqrt(len(flat))).clamp_min(1e-3).sqrt()

    def __call__(self, released: Released, seen: Released, classes: Int64[Tensor, " b"]) -> Float[Tensor, ""]:
        """Latents of the same (predicted) classes in the same order are compared, class by class."""
        mine, theirs = ((z - self.mean) / self.std for z in (released, seen))
        whole = unit_columns(self.axes.shape[1], DIRECTIONS).to(mine)
        pairs = [tuple((z.flatten(1) @ self.axes @ whole)[..., None] for z in (mine, theirs))]
        if mine.ndim == 4:
            reach = min(3, *mine.shape[2:])
            filters = unit_columns(mine.shape[1] * reach**2, DIRECTIONS).T.to(mine)
            filters = filters.reshape(DIRECTIONS, mine.shape[1], reach, reach)
            apart = 1 + int(torch.randint(2, ())) * (min(mine.shape[2:]) > 2 * (reach - 1))
            pairs.append(tuple(F.conv2d(z, filters, dilation=apart).flatten(2) for z in (mine, theirs)))
        return mine.mean(0).square().mean() + sum(wasserstein(a, b, classes) for a, b in pairs)


def wasserstein(a: Float[Tensor, "b d l"], b: Float[Tensor, "b d l"], labels: Int64[Tensor, " b"]) -> Float[Tensor, ""]:
    """Squared 2-Wasserstein distance along each direction d, within each class: sorted values are paired."""
    apart = 2 * max(a.detach().abs().max().item(), b.abs().max().item()) + 1
    offset = (apart * labels.to(a))[:, None, None]
    first, second = ((z + offset).transpose(0, 1).flatten(1).sort(1).values for z in (a, b))
    return (first - second).square().mean()


def unit_columns(rows: int, columns: int) -> Float[Tensor, "rows columns"]:
    return F.normalize(torch.randn(rows, columns), dim=0)


def unnatural(pictures: Float[Tensor, "n c h w"], natural: Float[Tensor, "m c h w"]) -> float:
    """The largest difference of mean (in deviations), log spectrum of 4×4 patches, and log roughness."""
    level = (pictures.mean(0) - natural.mean(0)).abs().mean() / natural.std().clamp_min(1e-6)
    spectrum, rough = ((f(pictures) / f(natural)).log().abs().mean() for f in (patch_spectrum, roughness))
    return max(level.item(), spectrum.item(), rough.item())


def patch_spectrum(x: Pictures, side: int = 4) -> Float[Tensor, " d"]:
    """Variances of patches along their principal components, smallest first."""
    patches = F.unfold(x, side, stride=side).transpose(1, 2).flatten(0, 1)
    spectrum = torch.linalg.eigvalsh(patches.T.cov().double())
    return spectrum.clamp_min(1e-4 * spectrum.mean().clamp_min(1e-8)).to(x)


def roughness(x: Pictures) -> Float[Tensor, ""]:
    return (x.diff(dim=2).abs().mean() + x.diff(dim=3).abs().mean()).clamp_min(1e-6)
