"""Likeness of two images in [0,1], one value per image, and what remains of it after alignment."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import product
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
REACH = 2  # pixels that a picture may be moved by, in each direction
FLAT = 1e-8  # variance at or below which a channel counts as constant: no gain can be told from it


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
        parts = zip(guess.split(512), truth.split(512), strict=True)
        return torch.cat([self.compute(a.clamp(0, 1), b) for a, b in parts])

    def fits(self, pictures: Pictures) -> bool:
        return min(pictures.shape[-2:]) >= self.smallest and (not self.package or find_spec(self.package) is not None)


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
    nearest = torch.cdist(guess.flatten(1), gallery.flatten(1)).topk(min(top, len(gallery)), largest=False).indices
    return (nearest == torch.arange(len(guess), device=guess.device)[:, None]).any(1).float()


def moved(pictures: Pictures, down: int, right: int) -> Pictures:
    """Moved by so many pixels; the border is repeated where nothing is known."""
    height, width = pictures.shape[-2:]
    rows = (torch.arange(height, device=pictures.device) - down).clamp(0, height - 1)
    columns = (torch.arange(width, device=pictures.device) - right).clamp(0, width - 1)
    return pictures.index_select(2, rows).index_select(3, columns)


def recoloured(pictures: Pictures, truth: Pictures, down: int, right: int) -> Pictures:
    """Gain · picture + offset per image and channel, by least squares over the pixels that a move still covers."""
    moves = zip(truth.shape[2:], (down, right), strict=True)
    rows, columns = (slice(max(0, move), length + min(0, move)) for length, move in moves)
    seen, wanted = pictures[..., rows, columns], truth[..., rows, columns]
    seen_mean, wanted_mean = seen.mean((2, 3), keepdim=True), wanted.mean((2, 3), keepdim=True)
    deviation = seen - seen_mean
    variance = deviation.square().mean((2, 3), keepdim=True)
    gain = torch.where(variance > FLAT, (deviation * wanted).mean((2, 3), keepdim=True) / variance, 0)
    return pictures * gain + (wanted_mean - gain * seen_mean)


def aligned(guess: Pictures, truth: Pictures) -> Pictures:
    """Each guess as it is, or mirrored or not, moved by up to two pixels and recoloured: whatever is nearest.

    Nearest means the lowest MSE over the whole picture, so alignment never raises it. It tells any guess, even a
    constant one, the brightness and contrast of the truth: compare it only with baselines aligned in the same way.
    """
    found, moves = [], range(-REACH, REACH + 1)
    for some, wanted in zip(guess.clamp(0, 1).split(64), truth.split(64), strict=True):
        best, lowest = some, squared_error(some, wanted)
        for picture, down, right in product((some, some.flip(3)), moves, moves):
            candidate = recoloured(moved(picture, down, right), wanted, down, right).clamp_(0, 1)
            error = squared_error(candidate, wanted)
            better = error < lowest
            best = torch.where(better[:, None, None, None], candidate, best)
            lowest = torch.where(better, error, lowest)
        found.append(best)
    return torch.cat(found)
