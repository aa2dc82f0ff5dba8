"""Likeness of two images in [0,1], one value per image (maths §5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

Pictures = Float[Tensor, "n c h w"]
PerImage = Float[Tensor, " n"]


@dataclass(frozen=True)
class Metric:
    """A per-image score and its facts."""

    compute: Callable[[Pictures, Pictures], PerImage]
    higher_is_better: bool
    """For the attacker: a higher score means a better reconstruction."""
    lowest: float
    highest: float

    def __call__(self, guess: Pictures, truth: Pictures) -> PerImage:
        """One score per image; the guess is clamped to [0,1] first."""
        return self.compute(guess.clamp(0, 1), truth)


def squared_error(guess: Pictures, truth: Pictures) -> PerImage:
    """Mean over pixels of (x̂ − x)²."""
    return (guess - truth).square().mean((1, 2, 3))


def peak_signal_to_noise(guess: Pictures, truth: Pictures) -> PerImage:
    """10·log10(1/MSE) in dB, of each image by itself; a perfect copy counts as 100 dB."""
    return -10 * torch.log10(squared_error(guess, truth).clamp_min(1e-10))


def structural_similarity(guess: Pictures, truth: Pictures) -> PerImage:
    """SSIM with an 11×11 Gaussian window, σ 1.5, averaged where the whole window lies inside the image.

    As in the original and in scikit-image; the library's own average also counts its mirrored border.
    """
    from torchmetrics.functional.image import structural_similarity_index_measure

    def inside(a: Tensor, b: Tensor) -> Tensor:
        _, everywhere = structural_similarity_index_measure(
            a,
            b,
            gaussian_kernel=True,
            sigma=1.5,
            kernel_size=11,
            reduction="none",
            data_range=1.0,
            return_full_image=True,
        )
        return everywhere[..., 5:-5, 5:-5].mean((1, 2, 3))

    return torch.cat([inside(a, b) for a, b in zip(guess.split(512), truth.split(512), strict=True)])


METRICS = {
    "mse": Metric(squared_error, higher_is_better=False, lowest=0.0, highest=1.0),
    "psnr": Metric(peak_signal_to_noise, higher_is_better=True, lowest=0.0, highest=100.0),
    "ssim": Metric(structural_similarity, higher_is_better=True, lowest=-1.0, highest=1.0),
}


def reidentified(guess: Pictures, gallery: Pictures) -> PerImage:
    """1 where the true image is the gallery's nearest to its reconstruction, else 0."""
    nearest = torch.cdist(guess.flatten(1), gallery.flatten(1)).argmin(1)
    return (nearest == torch.arange(len(guess), device=guess.device)).float()
