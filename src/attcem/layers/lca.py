"""Sparse coding by neurons that compete: the locally competitive algorithm (Rozell et al. 2008)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

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
        if atoms < 1 or iters < 1:
            raise ValueError(f"sparse coding needs at least one atom and one round, not {atoms} and {iters}")
        if threshold < 0 or kernel % 2 == 0:
            raise ValueError(f"threshold={threshold} must not be negative, and kernel={kernel} must be odd")
        self.threshold, self.iters, self.kernel = threshold, iters, kernel
        # Of length 1 from the start: longer weights would learn more slowly, by the square of their length.
        start = F.normalize(torch.randn(atoms, channels * kernel**2), dim=1)
        self.weight = nn.Parameter(start.view(atoms, channels, kernel, kernel))

    @property
    def dictionary(self) -> Float[Tensor, "m c k k"]:
        """The atoms, each of length 1."""
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
