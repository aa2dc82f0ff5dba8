"""Structural similarity of two images in [0,1]: differentiable, and fast enough to train on."""

import torch
from jaxtyping import Float
from torch import Tensor

WINDOW, BLUR = 11, 1.5  # side and standard deviation of the Gaussian window in which structure is compared

LUMINANCE_FLOOR, CONTRAST_FLOOR = 0.01**2, 0.03**2


def windows(side: int, like: Tensor) -> Float[Tensor, "side inside"]:
    """Gaussian windows, one a column, at every place of a side where they fit; a short side is one window."""
    size = min(WINDOW, side)
    offset = torch.arange(size, dtype=like.dtype, device=like.device) - (size - 1) / 2
    bell = (-(offset**2) / (2 * BLUR**2)).softmax(0)
    place = torch.arange(side - size + 1, device=like.device)
    columns = like.new_zeros(side, len(place))
    columns[place + torch.arange(size, device=like.device).unsqueeze(1), place] = bell.unsqueeze(1)
    return columns


def luminance_and_contrast(
    guess: Float[Tensor, "n c h w"], x: Float[Tensor, "n c h w"]
) -> tuple[Float[Tensor, "n c i j"], Float[Tensor, "n c i j"]]:
    """The two factors of SSIM around every pixel: likeness of the local means, and of the deviations from them.

    (2μ_gμ_x + .01²) / (μ_g² + μ_x² + .01²) and (2σ_gx + .03²) / (σ_g² + σ_x² + .03²).
    """
    planes = torch.cat([guess, x, guess * guess, x * x, guess * x], 1)
    # Products with a band of windows: many times faster than convolving thousands of single planes.
    local = windows(x.shape[2], x).T @ planes @ windows(x.shape[3], x)
    mean_g, mean_x, gg, xx, gx = local.chunk(5, 1)
    both, squares = mean_g * mean_x, mean_g * mean_g + mean_x * mean_x
    luminance = (2 * both + LUMINANCE_FLOOR) / (squares + LUMINANCE_FLOOR)
    contrast = (2 * (gx - both) + CONTRAST_FLOOR) / (gg + xx - squares + CONTRAST_FLOOR)
    return luminance, contrast


def structural_similarity(guess: Float[Tensor, "n c h w"], x: Float[Tensor, "n c h w"]) -> Float[Tensor, " n"]:
    """SSIM of each image, averaged where the whole window lies inside, as in the original and in scikit-image."""
    luminance, contrast = luminance_and_contrast(guess, x)
    return (luminance * contrast).mean((1, 2, 3))
