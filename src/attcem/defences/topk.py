"""Only the largest entries of the latent leave the device."""

import torch
from jaxtyping import Bool
from torch import Tensor

from attcem.defences.base import Defence, Stage
from attcem.maths import apart
from attcem.types import Latent, Released


def how_many(size: int, keep: float) -> int:
    return max(1, round(keep * size))


def largest(z: Latent, keep: float) -> Bool[torch.Tensor, " b *latent"]:
    """True at exactly max(1, round(keep · d)) entries of each sample: the largest magnitudes, the first where equal."""
    size = z.flatten(1).abs()
    count = how_many(size.shape[1], keep)
    if torch.compiler.is_exporting():  # ONNX has no stable sort; its TopK takes the first where equal, too
        chosen = size.topk(count, dim=1).indices
    else:
        chosen = size.sort(dim=1, descending=True, stable=True).indices[:, :count]
    return torch.zeros_like(size, dtype=torch.bool).scatter_(1, chosen, True).view(z.shape)


class TopK(Defence):
    """Releases the largest entries of each latent by magnitude, and zeros in place of the others.

    z_i = ẑ_i if |ẑ_i| is among the k = max(1, round(keep · d)) largest of the sample, else 0.

    Args:
        keep: share of the entries that is released.
    """

    equation = "z_i = ẑ_i · 1[ |ẑ_i| ∈ top k ]"
    stage = Stage.PRUNING
    strength = "keep"

    def __init__(self, keep: float = 0.5) -> None:
        super().__init__()
        if not 0 < keep <= 1:
            raise ValueError(f"topk keep={keep} is no share of the entries: give something like 0.5")
        self.keep = keep

    def release(self, z: Latent) -> Released:
        return torch.where(largest(z.detach(), self.keep), z, torch.zeros_like(z))

    def pieces(self, z: Latent) -> dict[str, Tensor]:
        return apart(self.release(z), how_many(z[0].numel(), self.keep))
