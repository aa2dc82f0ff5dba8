"""Distance correlation between images and latents as a penalty."""

import torch
from jaxtyping import Float
from torch import Tensor

from attcem.defences.base import Defence, nothing
from attcem.maths.dcor import LEAST_UNBIASED, distance_correlation
from attcem.types import Batch


class NoPeek(Defence):
    """Penalises distance correlation: images that look alike should not have latents that lie close.

    L = dCor²(x, ẑ) over a batch of images and clean latents, flattened (Vepakomma et al. 2020). It does not feel
    the scale of a latent: an encoder may make it larger, so that the noise no longer matters.

    Args:
        lam: weight of the penalty's gradient in the encoder.
        unbiased: whether to correct the bias, which is large where a batch has fewer samples than a latent has numbers.
        warmup: epochs before it starts.
    """

    equation = "L = dCor²(x, ẑ)"

    def __init__(self, lam: float = 0.1, unbiased: bool = False, warmup: int = 0) -> None:
        super().__init__()
        self.lam, self.unbiased, self.warmup = lam, unbiased, warmup

    def penalty(self, batch: Batch) -> Float[Tensor, ""]:
        if self.unbiased and len(batch.z) < LEAST_UNBIASED:
            return nothing(batch.z)
        wide = torch.promote_types(batch.z.dtype, torch.float32)
        with torch.autocast(batch.z.device.type, enabled=False):
            x, z = (values.flatten(1).to(wide) for values in (batch.x, batch.z))
            return distance_correlation(x, z, unbiased=self.unbiased)
