"""Gaussian noise on everything that leaves the device."""

from torch import Tensor

from attcem.defences.base import Defence, Stage
from attcem.types import Latent, Released


class Noise(Defence):
    """Adds fresh Gaussian noise at every release: z = ẑ + σ_n ε, ε ~ N(0, I)."""

    equation = "z = ẑ + σ ε,   ε ~ N(0, I)"
    stage = Stage.NOISE
    strength = "sigma"
    distribution = "normal"

    def __init__(self, sigma: float = 0.1) -> None:
        super().__init__()
        if not 0 <= sigma < float("inf"):
            raise ValueError(f"noise sigma must be zero or positive, not {sigma}")
        self.sigma = sigma

    def release(self, z: Latent, noise: Tensor | None = None) -> Released:
        return z + self.sigma * self.drawn(z, noise)
