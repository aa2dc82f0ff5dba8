"""Sparse coding of the latent: what a few learned atoms cannot say does not leave the device."""

import math
from collections.abc import Sequence

import torch

from attcem.defences.base import Defence, Stage
from attcem.layers import WIDEST
from attcem.layers.lca import SparseCoding
from attcem.types import Latent, Released


class LCA(Defence):
    """Releases the latent as a few atoms of a learned dictionary draw it: sparse coding by competing neurons.

    z = ρ·Φ a(ẑ/ρ),  a(x) ≈ argmin ½‖x − Φa‖² + threshold·‖a‖₁ after `iters` rounds (Rozell et al. 2008, Dibbo et al.
    2024), ρ the sample's root mean square: a latent can neither outgrow the threshold nor vanish below it. Atoms are
    3 × 3 patches of a spatial latent, or whole flat latents; the task trains them, and nothing asks for likeness to ẑ.

    Args:
        threshold: what a match must exceed to be heard; larger is sparser and hides more.
        atoms: atoms in the dictionary for each channel, or each entry of a flat latent.
        iters: rounds of competition.
    """

    stage = Stage.TRANSFORM
    strength = "threshold"

    def __init__(self, threshold: float = 0.5, atoms: float = 2.0, iters: int = 10) -> None:
        super().__init__()
        if not 0 <= threshold < math.inf:
            raise ValueError(f"lca threshold={threshold} must be zero or positive: give something like 0.5")
        if not (0 < atoms < math.inf and iters >= 1):
            raise ValueError(f"lca needs atoms and rounds, not {atoms} and {iters}: give atoms=2 and iters=10")
        self.threshold, self.atoms, self.iters = threshold, atoms, iters

    def setup(self, *, latent: Sequence[int], classes: int, sigma: float) -> None:
        spatial = len(latent) == 3
        width = latent[0] if spatial else math.prod(latent)
        count = max(1, round(self.atoms * width))
        if not spatial and count > WIDEST:
            raise ValueError(
                f"lca would need {count} atoms of {width} numbers each (the limit is {WIDEST}): cut where the latent "
                "is spatial, add a bottleneck, or lower defence.lca.atoms"
            )
        self.coding = SparseCoding(width, count, threshold=self.threshold, iters=self.iters, kernel=3 if spatial else 1)

    def release(self, z: Latent) -> Released:
        grid = z if z.ndim == 4 else z.flatten(1)[..., None, None]
        scale = torch.linalg.vector_norm(grid, dim=(1, 2, 3), keepdim=True) / math.sqrt(grid[0].numel())
        scale = scale.clamp_min(torch.finfo(z.dtype).eps)
        return (scale * self.coding(grid / scale)[1]).view(z.shape)
