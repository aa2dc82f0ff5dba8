"""What is sent is one of few values on a fixed grid: the last link of a release."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from attcem.defences.base import Defence, Stage
from attcem.types import Latent, Released

REACH = 4  # deviations of the noise by which the grid extends beyond the clean latent on both sides
BITS = (4, 8)


class Wire(Defence):
    """Rounds every number to the nearest of 2^bits values between low − 4σ and high + 4σ, so that it is sent as bits.

    code = round((2^bits − 1) · clamp((z − a)/(b − a), 0, 1)), z = a + (b − a) · code / (2^bits − 1). Low bits of a
    float then tell nothing. The gradient of a rounded number is that of the clamped one.

    Args:
        bits: of each number that is sent, 8 or 4.
        low: least value of the clean latent; 0 behind a sigmoid.
        high: greatest value of the clean latent; 1 behind a sigmoid.
    """

    equation = "z ← a + (b − a) · round( (2ⁿ − 1) (z − a) / (b − a) ) / (2ⁿ − 1)"
    stage = Stage.WIRE
    strength = "bits"

    def __init__(self, bits: int = 8, low: float = 0.0, high: float = 1.0) -> None:
        super().__init__()
        if bits not in BITS or isinstance(bits, bool):
            raise ValueError(f"wire bits={bits!r} does not fit into bytes: give 8 or 4")
        if not -float("inf") < low < high < float("inf"):
            raise ValueError(f"wire low={low} must lie below high={high}: give the range of the clean latent")
        self.bits, self.low, self.high = bits, low, high
        self.grid = (low, high)

    def setup(self, *, latent: Sequence[int], classes: int, sigma: float) -> None:
        self.grid = (self.low - REACH * sigma, self.high + REACH * sigma)

    @property
    def most(self) -> int:
        return 2**self.bits - 1

    def codes(self, z: Released) -> Float[Tensor, " b *latent"]:
        """Whole numbers from 0 to 2^bits − 1."""
        return (self.most * self.shares(z)).round()

    def values(self, codes: Float[Tensor, " b *latent"]) -> Released:
        least, greatest = self.grid
        return least + (greatest - least) / self.most * codes

    def shares(self, z: Released) -> Float[Tensor, " b *latent"]:
        least, greatest = self.grid
        return ((z - least) / (greatest - least)).clamp(0, 1)

    def release(self, z: Latent) -> Released:
        rounded = self.values(self.codes(z.detach()))
        if torch.compiler.is_exporting():
            return rounded
        smooth = self.values(self.most * self.shares(z))
        return smooth + (rounded - smooth.detach())
