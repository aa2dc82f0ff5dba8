"""Random entries of the latent never leave the device."""

from torch import Tensor

from attcem.defences.base import Defence, Stage
from attcem.maths import apart
from attcem.types import Latent, Released


class Dropout(Defence):
    """Releases each entry of the latent with probability 1 − rate, drawn afresh every time, else a zero.

    z = ẑ ⊙ m / (1 − rate), m ~ Bernoulli(1 − rate): the mean is kept.

    Args:
        rate: probability that an entry is held back.
    """

    equation = "z = ẑ ⊙ m / (1 − p),   m ~ Bernoulli(1 − p)"
    stage = Stage.DROPOUT
    strength = "rate"
    distribution = "uniform"

    def __init__(self, rate: float = 0.5) -> None:
        super().__init__()
        if not 0 <= rate < 1:
            raise ValueError(f"dropout rate={rate} is no probability below 1: give something like 0.5")
        self.rate = rate

    def release(self, z: Latent, noise: Tensor | None = None) -> Released:
        return z * (self.drawn(z, noise) >= self.rate) / (1 - self.rate)

    def pieces(self, z: Latent) -> dict[str, Tensor]:
        return apart(self.release(z))
