"""Sparse coding of the latent: what a few learned atoms, which compete, cannot say does not leave the device."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attcem.defences.base import Defence, Stage
from attcem.layers import WIDEST
from attcem.maths import apart
from attcem.types import Latent, Released

ROUNDS = 6  # of power iteration: mostly .6 to 1 of the largest eigenvalue, but a start may lie across what it looks for

SHARE = 0.55
"""Of an upper bound on the largest eigenvalue, below which no estimate is believed: half of it would already settle."""


class SparseCoding(nn.Module):
    """Explains an input by few atoms of a learned dictionary Φ: rounds of u ← u + (b − u − (ΦᵀΦ − I) a)/τ.

    b = Φᵀx,  a = soft(u, threshold),  u starting at 0. It settles where a minimises ½‖x − Φa‖² + threshold·‖a‖₁. Atoms
    are kernel × kernel patches of all channels, of length 1, placed at every position; with kernel 1 and one position
    the dictionary is flat. τ ≥ 1 follows the largest eigenvalue of ΦᵀΦ, so that no dictionary makes it diverge.
    """

    def __init__(self, channels: int, atoms: int, *, threshold: float, iters: int = 10, kernel: int = 3) -> None:
        super().__init__()
        self.threshold, self.iters, self.kernel = threshold, iters, kernel
        # Of length 1 from the start: longer weights would learn more slowly, by the square of their length.
        start = F.normalize(torch.randn(atoms, channels * kernel**2), dim=1)
        self.weight = nn.Parameter(start.view(atoms, channels, kernel, kernel))

    @property
    def dictionary(self) -> Float[Tensor, "m c k k"]:
        return F.normalize(self.weight.flatten(1), dim=1).view_as(self.weight)

    def forward(self, x: Float[Tensor, "b c h w"]) -> tuple[Float[Tensor, "b m h w"], Float[Tensor, "b c h w"]]:
        """The sparse code a, and what it says of the input: Φa."""
        atoms = self.dictionary
        tau = self.stretch(atoms, x).clamp_min(1.0)
        u = self.match(atoms, x) / tau
        for _ in range(self.iters - 1):
            a = F.softshrink(u, self.threshold)
            u = u + (self.match(atoms, x - self.draw(atoms, a)) + a - u) / tau
        code = F.softshrink(u, self.threshold)
        return code, self.draw(atoms, code)

    def match(self, atoms: Float[Tensor, "m c k k"], x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b m h w"]:
        """Φᵀx: how well each atom fits at each position."""
        return F.conv2d(x, atoms, padding=self.kernel // 2)

    def draw(self, atoms: Float[Tensor, "m c k k"], code: Float[Tensor, "b m h w"]) -> Float[Tensor, "b c h w"]:
        """Φa: the atoms of the code, laid over each other."""
        return F.conv_transpose2d(code, atoms, padding=self.kernel // 2)

    def stretch(self, atoms: Float[Tensor, "m c k k"], like: Float[Tensor, "b c h w"]) -> Float[Tensor, ""]:
        """The largest eigenvalue of ΦᵀΦ, never less than half of it: power iteration, kept up by a bound.

        It depends on the dictionary and the input's shape only: what becomes of one sample is no business of another.
        """
        one = torch.zeros_like(like[:1])
        v = torch.arange(1, one.numel() + 1, dtype=one.dtype, device=one.device).mul(12.9898).sin().view_as(one)
        for _ in range(ROUNDS):
            v = self.draw(atoms, self.match(atoms, F.normalize(v.flatten(), dim=0).view_as(v)))
        return torch.maximum(v.norm(), SHARE * bound_stretch(atoms, like.shape[-2], like.shape[-1]))


def bound_stretch(atoms: Float[Tensor, "m c k k"], height: int, width: int) -> Float[Tensor, ""]:
    """An upper bound on the largest eigenvalue of ΦᵀΦ: max over frequencies of ‖(ŴᴴŴ)⁴‖^¼ (Frobenius).

    An image with a border is a part of a torus wide enough that no atom reaches around it, so ‖Φ‖ is at most the norm
    there; and there frequencies do not mix: each has a matrix Ŵ [m, c] of its own, the atoms' Fourier transform.
    """
    reach = atoms.shape[-1] // 2
    rows, columns = min(reach, height - 1), min(reach, width - 1)  # further away than that, an atom meets no input
    met = atoms[..., reach - rows : reach + rows + 1, reach - columns : reach + columns + 1]
    if rows or columns:
        waves = torch.fft.rfft2(met, s=(height + rows, width + columns)).permute(2, 3, 0, 1)
    else:
        waves = met.permute(2, 3, 0, 1)  # of one point: the same at every frequency
    gram = waves.mH @ waves if waves.shape[-1] <= waves.shape[-2] else waves @ waves.mH
    power = gram @ gram
    return torch.linalg.matrix_norm(power @ power).amax() ** 0.25


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

    equation = "z = Φ a,   a ≈ argmin ½ ‖ẑ − Φ a‖² + t ‖a‖₁"
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
        scale, _, drawing = self.coded(z)
        return (scale * drawing).view(z.shape)

    def pieces(self, z: Latent) -> dict[str, Tensor]:
        """Of the code that the drawing is made of."""
        scale, code, _ = self.coded(z)
        return apart(scale * code)

    def coded(self, z: Latent) -> tuple[Float[Tensor, "b 1 1 1"], Float[Tensor, "b m h w"], Float[Tensor, "b c h w"]]:
        """ρ, the code of ẑ/ρ, and what it says: Φa."""
        grid = z if z.ndim == 4 else z.flatten(1)[..., None, None]
        scale = torch.linalg.vector_norm(grid, dim=(1, 2, 3), keepdim=True) / math.sqrt(grid[0].numel())
        scale = scale.clamp_min(torch.finfo(z.dtype).eps)
        return scale, *self.coding(grid / scale)
