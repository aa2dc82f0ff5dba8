"""A small network on the device that bends what is released away from what an inverter can use."""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attcem.defences.arl import ARL
from attcem.naming import look_up
from attcem.types import Latent, Released

LARGEST = 1e4  # the generator sees no larger numbers: what it makes of them stays finite


def within_all(raw: Float[Tensor, " b *latent"]) -> Float[Tensor, " b *latent"]:
    """g / √(1 + mean g²): the root mean square of a sample stays below 1, single numbers need not."""
    return raw / (1 + raw.square().flatten(1).mean(1)).sqrt().reshape(-1, *[1] * (raw.ndim - 1))


NORMS: Mapping[str, Callable[[Tensor], Tensor]] = {"linf": torch.tanh, "l2": within_all}


class AdversarialNoise(ARL):
    """Adds a learned, bounded perturbation to what is released, trained to mislead a decoder and keep the task.

    z' = z + budget · bound(g(z)), z being what the links before it let out. The generator g learns from the task's
    gradient through the release and from the penalty of `arl` against an adversary of its own. The perturbation is the
    same whenever z is: it adds no uncertainty, and only a fresh attacker can tell what it hides.

    Args:
        lam: weight of the penalty's gradient in the encoder; at 0 the generator alone works against the adversary.
        budget: bound of the perturbation, in the units of the latent, as sigma is for noise.
        norm: linf (every number within the budget) or l2 (each sample's root mean square within the budget).
        width: hidden channels of the generator, or hidden numbers for a latent without positions.
        loss_scale: factor on the penalty: what the generator gives for misleading, against the task.
        metric: ssim or mse: what the adversary wants, and what the penalty takes from it.
        threshold: SSIM below which, or MSE above which, a guess is harmless; by default 0.3 or 0.05.
        steps: how often the adversary learns from each batch.
        channels: width of the adversary.
        blocks: residual blocks of the adversary.
        lr: learning rate of the adversary.
        warmup: epochs before the encoder is penalised; generator and adversary learn from the first step.
    """

    equation = "z′ = z + g(z),   ‖g(z)‖ ≤ b"
    strength = "budget"
    penalises = True  # the generator learns from it even where the encoder does not

    def __init__(
        self,
        lam: float = 0.0,
        budget: float = 0.3,
        norm: str = "linf",
        width: int = 32,
        loss_scale: float = 1.0,
        metric: str = "ssim",
        threshold: float | None = None,
        steps: int = 1,
        channels: int = 64,
        blocks: int = 2,
        lr: float = 3e-3,
        warmup: int = 0,
    ) -> None:
        super().__init__(lam, metric, threshold, steps, channels, blocks, lr, warmup)
        self.bounded = look_up("norm", norm, NORMS)
        if not 0 < budget < math.inf or width < 1:
            raise ValueError(
                f"budget={budget} and width={width} make no perturbation: give a budget above 0, such as 0.3, and at "
                "least 1 hidden channel"
            )
        self.budget, self.norm, self.width, self.loss_scale = budget, norm, width, loss_scale

    def setup(self, *, latent: Sequence[int], classes: int, sigma: float) -> None:
        super().setup(latent=latent, classes=classes, sigma=sigma)
        width, channels, size = self.width, latent[0], math.prod(latent)
        layers: list[nn.Module]
        if len(latent) == 3:
            layers = [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, channels, 3, padding=1)]
        else:
            layers = [nn.Flatten(), nn.Linear(size, width), nn.ReLU(), nn.Linear(width, size)]
            layers.append(nn.Unflatten(1, tuple(latent)))
        self.generator = nn.Sequential(*layers)

    def release(self, z: Latent) -> Released:
        raw = self.generator(z.to(next(self.generator.parameters()).dtype).clamp(-LARGEST, LARGEST))
        return z + self.budget * self.bounded(raw).to(z.dtype)

    @property
    def flags(self) -> list[str]:
        return [
            *super().flags,
            "adds a fixed function of the latent, no uncertainty: it bounds nothing, and only "
            "attackers that training never met tell what it hides",
        ]
