"""Likeness of two images in [0,1], one value per image (maths §5)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from math import inf

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attcem.maths.similarity import WINDOW, luminance_and_contrast, structural_similarity

Pictures = Float[Tensor, "n c h w"]
PerImage = Float[Tensor, " n"]

SCALES = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
"""Exponents of MS-SSIM, finest scale first (Wang, Simoncelli and Bovik 2003)."""
COARSEST = (WINDOW - 1) * 2 ** (len(SCALES) - 1) + 1  # pixels of which the coarsest scale still fills a window


@dataclass(frozen=True)
class Metric:
    """A per-image score and its facts."""

    compute: Callable[[Pictures, Pictures], PerImage]
    higher_is_better: bool  # for the attacker: a higher score means a better reconstruction
    lowest: float
    highest: float
    smallest: int = 1  # pixels of the shorter side below which the metric is not defined
    package: str | None = None  # an optional package that it is computed with

    def __call__(self, guess: Pictures, truth: Pictures) -> PerImage:
        """One score per image; the guess is clamped to [0,1] first."""
        return torch.cat(
            [self.compute(a.clamp(0, 1), b) for a, b in zip(guess.split(512), truth.split(512), strict=True)]
        )

    def fits(self, pictures: Pictures) -> bool:
        """Whether it can be computed, for pictures of this size and with what is installed."""
        installed = self.package is None or find_spec(self.package) is not None
        return installed and min(pictures.shape[-2:]) >= self.smallest


def squared_error(guess: Pictures, truth: Pictures) -> PerImage:
    """Mean over pixels of (x̂ − x)²."""
    return (guess - truth).square().mean((1, 2, 3))


def peak_signal_to_noise(guess: Pictures, truth: Pictures) -> PerImage:
    """10·log10(1/MSE) in dB, of each image by itself; a perfect copy counts as 100 dB."""
    return -10 * torch.log10(squared_error(guess, truth).clamp_min(1e-10))


def multiscale_similarity(guess: Pictures, truth: Pictures) -> PerImage:
    """MS-SSIM: the product over five scales of contrast^w, times luminance^w at the coarsest; channels are averaged.

    Negative likenesses count as 0; each scale halves the last by the mean of 2×2 pixels.
    """
    product = guess.new_ones(guess.shape[:2])
    for weight in SCALES[:-1]:
        _, contrast = luminance_and_contrast(guess, truth)
        product = product * contrast.mean((2, 3)).relu() ** weight
        guess, truth = (F.avg_pool2d(part, 2, ceil_mode=True) for part in (guess, truth))
    luminance, contrast = luminance_and_contrast(guess, truth)
    return (product * (luminance * contrast).mean((2, 3)).relu() ** SCALES[-1]).mean(1)


@cache
def lpips_network() -> nn.Module:
    from lpips import LPIPS

    with torch.random.fork_rng():
        return LPIPS(net="alex", verbose=False).eval()


@torch.no_grad()
def learned_perceptual(guess: Pictures, truth: Pictures) -> PerImage:
    """LPIPS with AlexNet (Zhang et al. 2018); a grey picture is shown as three equal channels."""
    a, b = (2 * part.expand(-1, 3, -1, -1) - 1 for part in (guess, truth))
    return lpips_network().to(guess.device)(a, b).flatten()


METRICS = {
    "mse": Metric(squared_error, higher_is_better=False, lowest=0.0, highest=1.0),
    "psnr": Metric(peak_signal_to_noise, higher_is_better=True, lowest=0.0, highest=100.0),
    "ssim": Metric(structural_similarity, higher_is_better=True, lowest=-1.0, highest=1.0, smallest=WINDOW),
    "ms_ssim": Metric(multiscale_similarity, higher_is_better=True, lowest=0.0, highest=1.0, smallest=COARSEST),
    "lpips": Metric(learned_perceptual, higher_is_better=False, lowest=0.0, highest=inf, smallest=31, package="lpips"),
}
"""Name → metric; which of them can be computed for given pictures, each says itself (`fits`)."""


def reidentified(guess: Pictures, gallery: Float[Tensor, "N c h w"], top: int = 1) -> PerImage:
    """1 where the true image, at the same place in the gallery, is among the `top` nearest to its reconstruction."""
    distances = torch.cdist(guess.flatten(1), gallery.flatten(1))
    nearest = distances.topk(min(top, len(gallery)), largest=False).indices
    return (nearest == torch.arange(len(guess), device=guess.device)[:, None]).any(1).float()
