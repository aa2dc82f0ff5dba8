"""Distance correlation: whether images that look alike have latents that lie close (Székely et al. 2007)."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

LEAST_UNBIASED = 4  # samples below which the bias cannot be corrected


def distance_correlation(
    x: Float[Tensor, "n p"], z: Float[Tensor, "n q"], *, unbiased: bool = False
) -> Float[Tensor, ""]:
    """dCor²(x, z) = ⟨A, B⟩ / √(⟨A, A⟩ ⟨B, B⟩), A and B being the centred distances within x and within z.

    Between 0 and 1, and 0 where either never varies. It is biased upwards, towards 1 the more features there are for
    each sample; `unbiased` corrects that (Székely and Rizzo 2013), lies around 0 where nothing is shared, may fall
    below it, and needs four samples.
    """
    if unbiased and len(x) < LEAST_UNBIASED:
        raise ValueError(f"without bias it takes {LEAST_UNBIASED} samples, not {len(x)}: use larger batches")
    a, b = (scaled_centred(values, u_centred if unbiased else double_centred) for values in (x, z))
    shared, of_x, of_z = (a * b).sum(), (a * a).sum(), (b * b).sum()
    varies = of_x * of_z > 0
    return torch.where(varies, shared / torch.where(varies, of_x * of_z, 1.0).sqrt(), 0.0 * shared)


def scaled_centred(x: Float[Tensor, "n p"], centred: Callable[[Tensor], Tensor]) -> Float[Tensor, "n n"]:
    """Centred distances, the largest being 1, so that squares of squares stay within range; 0 where all is rounding."""
    # Without the rounding of ‖a‖² − 2ab + ‖b‖²; the gradient of a distance of 0 is 0.
    distance = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")
    found = centred(distance)
    size, precision = found.detach().abs().amax(), torch.finfo(x.dtype)
    heard = size > (16 * precision.eps * distance.detach().amax()).clamp_min(precision.tiny)
    return found * torch.where(heard, 1 / size, 0.0)


def double_centred(distance: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
    """d_ij − mean of row i − mean of column j + mean of all."""
    return distance - distance.mean(0, keepdim=True) - distance.mean(1, keepdim=True) + distance.mean()


def u_centred(distance: Float[Tensor, "n n"]) -> Float[Tensor, "n n"]:
    """d_ij − Σ_i/(n−2) − Σ_j/(n−2) + Σ/((n−1)(n−2)), and 0 on the diagonal."""
    n = len(distance)
    rows, columns = distance.sum(1, keepdim=True) / (n - 2), distance.sum(0, keepdim=True) / (n - 2)
    centred = distance - rows - columns + distance.sum() / ((n - 1) * (n - 2))
    return centred * (1 - torch.eye(n, dtype=distance.dtype, device=distance.device))
