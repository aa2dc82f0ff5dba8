"""Local differential privacy: each latent is clipped, then drowned in noise that one of two mechanisms prescribes."""

import math

import torch

from attcem.defences.base import Defence, Stage
from attcem.naming import look_up
from attcem.types import Latent, Released


def gaussian_delta(sensitivity: float, epsilon: float, sigma: float) -> float:
    """δ = Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ), exact for every ε (Balle and Wang 2018, Theorem 8)."""
    from scipy.special import log_ndtr, ndtr  # a tenth of a second that only this needs

    half, reach = sensitivity / (2 * sigma), epsilon * sigma / sensitivity
    return float(ndtr(half - reach) - math.exp(epsilon + log_ndtr(-half - reach)))


def clipped(z: Latent, limit: float, order: int) -> Latent:
    """ẑ · min(1, limit / ‖ẑ‖), sample by sample."""
    wide = torch.promote_types(z.dtype, torch.float32)
    norm = torch.linalg.vector_norm(z.flatten(1), order, dim=1, dtype=wide)
    factor = (norm / limit).clamp_min(1.0).reciprocal().to(z.dtype)
    return z * factor.view(-1, *(1 for _ in z.shape[1:]))


MECHANISMS = {"gaussian": (2, "normal"), "laplace": (1, "laplace")}
"""Which norm is clipped, and where the noise is drawn from."""


EQUATIONS = {
    "gaussian": "z = clip₂(ẑ) + b N(0, I),   b = 2 c √(2 ln(1.25/δ)) / ε",
    "laplace": "z = clip₁(ẑ) + b Laplace,   b = 2 c / ε",
}


class LocalDP(Defence):
    """Clips each latent and adds noise so that any two pictures are hard to tell apart (local differential privacy).

    gaussian: z = clip₂(ẑ) + σ N(0, I), σ = 2·clip·√(2 ln(1.25/δ))/ε;  laplace: z = clip₁(ẑ) + b·Laplace, b = 2·clip/ε.
    Two clipped latents are never further apart than 2·clip. Without clipping it is the published form, sensitivity 1.
    Clipping brings latents closer, and Gaussian noise then hides them no less (Aishwarya and Li, arXiv 2409.03664):
    what unclipped latents tell through noise of this σ is still an upper limit.

    Args:
        epsilon: what one release may tell; smaller hides more.
        mechanism: gaussian (clips the l2 norm) or laplace (clips the l1 norm).
        delta: how often gaussian noise may tell more than that.
        clip: largest norm of a latent; null leaves it as it is, and gives no guarantee.
    """

    stage = Stage.LOCAL_DP
    strength = "epsilon"

    def __init__(
        self, epsilon: float = 8.0, mechanism: str = "gaussian", delta: float = 1e-4, clip: float | None = 1.0
    ) -> None:
        super().__init__()
        self.order, self.distribution = look_up("mechanism", mechanism, MECHANISMS)
        if not 0 < epsilon < math.inf:
            raise ValueError(f"local_dp epsilon={epsilon} must be positive and finite: give something like 8")
        if not 0 < delta < 1:
            raise ValueError(f"local_dp delta={delta} is no probability between 0 and 1: give something like 1e-4")
        if clip is not None and not 0 < clip < math.inf:
            raise ValueError(f"local_dp clip={clip} must be positive, or null for none: give something like 1")
        self.epsilon, self.mechanism, self.delta, self.clip = epsilon, mechanism, delta, clip
        self.sensitivity = 1.0 if clip is None else 2 * clip
        # Dwork and Roth 2014: Theorem 3.22 (gaussian, for ε < 1) and Theorem 3.6 (laplace, whatever δ)
        tail = math.sqrt(2 * math.log(1.25 / delta)) if mechanism == "gaussian" else 1.0
        self.scale = self.sensitivity * tail / epsilon
        self.sigma = self.scale if mechanism == "gaussian" else 0.0
        self.hides_earlier_noise = clip is not None

    @property
    def equation(self) -> str:
        return EQUATIONS[self.mechanism]

    def release(self, z: Latent, noise: torch.Tensor | None = None) -> Released:
        bounded = z if self.clip is None else clipped(z, self.clip, self.order)
        return bounded + self.scale * self.drawn(z, noise)

    @property
    def flags(self) -> list[str]:
        if self.clip is None:
            return [
                f"latents are not clipped (the published form), so two of them may lie any distance apart"
                f": epsilon={self.epsilon:g} is no guarantee of differential privacy; set defence.local_dp.clip"
            ]
        if self.mechanism == "gaussian" and self.epsilon >= 1:
            given = gaussian_delta(self.sensitivity, self.epsilon, self.scale)
            return [
                f"the formula of the gaussian mechanism is proven for epsilon below 1 only; at "
                f"epsilon={self.epsilon:g} its noise gives delta={given:.3g} (exact); {self.delta:.3g} was asked for"
            ]
        return []
