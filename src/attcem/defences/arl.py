"""Adversarial representation learning: the encoder learns to defeat a decoder that learns to invert it."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from attcem.defences.adversary import METRICS, Adversary
from attcem.defences.base import Defence
from attcem.naming import look_up
from attcem.types import Batch

EQUATIONS = {
    "ssim": "L = ReLU( SSIM(D(z), x) − t )",
    "mse": "L = ReLU( t − MSE(D(z), x) )",
}


class ARL(Defence):
    """Trains the encoder against a decoder that learns to invert what is released (ResSFL, Li et al. 2022).

    L = ReLU(SSIM(D(z), x) − threshold), or ReLU(threshold − MSE(D(z), x)): nothing once the adversary D guesses badly
    enough. After every step D learns on fresh releases of the batch, by an optimiser of its own; the penalty sees it
    frozen. How D fares says nothing about an attacker who comes later: that is for the audit.

    Args:
        lam: weight of the penalty's gradient in the encoder.
        metric: ssim or mse: what the adversary wants, and what the penalty takes from it.
        threshold: SSIM below which, or MSE above which, a guess is harmless; by default 0.3 or 0.05.
        steps: how often the adversary learns from each batch.
        channels: width of the adversary.
        blocks: residual blocks of the adversary.
        lr: learning rate of the adversary.
        warmup: epochs in which only the adversary learns.
    """

    loss_scale: float = 1.0
    calls: Tensor
    idle: Tensor

    def __init__(
        self,
        lam: float = 1.0,
        metric: str = "ssim",
        threshold: float | None = None,
        steps: int = 1,
        channels: int = 64,
        blocks: int = 2,
        lr: float = 3e-3,
        warmup: int = 0,
    ) -> None:
        super().__init__()
        self.judge = look_up("metric", metric, METRICS)
        if min(steps, channels) < 1 or blocks < 0 or not lr > 0:
            raise ValueError(
                f"steps={steps}, channels={channels}, blocks={blocks} and lr={lr} make no adversary that learns: give "
                "at least 1 step, 1 channel, 0 blocks, and a learning rate above 0, such as 3e-3"
            )
        self.lam, self.metric, self.threshold, self.warmup = lam, metric, threshold, warmup
        self.steps, self.channels, self.blocks, self.lr = steps, channels, blocks, lr
        self.harmless = self.judge.threshold if threshold is None else threshold

    @property
    def equation(self) -> str:
        return EQUATIONS[self.metric]

    def setup(self, *, latent: Sequence[int], classes: int, sigma: float) -> None:
        self.adversary = Adversary(latent, self.channels, self.blocks, self.lr)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("idle", torch.zeros((), dtype=torch.int64))

    def penalty(self, batch: Batch) -> Float[Tensor, ""]:
        released = self.release_all(batch.z)
        with torch.autocast(batch.z.device.type, enabled=False):
            score = self.adversary(released, batch.x, self.judge.score)
        value = self.loss_scale * F.relu(self.judge.sign * (score - self.harmless))
        self.calls += value.isfinite()
        self.idle += value == 0
        if batch.watched:
            batch.readings.update({f"adversary_{self.metric}": score.detach(), "idle": self.idle / self.calls})
        return value

    def observe(self, batch: Batch) -> None:
        for _ in range(self.steps):
            with torch.no_grad():
                released = self.release_all(batch.z.to(self.adversary.first.dtype))
            self.adversary.learn(released, batch.x, self.judge)

    @property
    def flags(self) -> list[str]:
        calls, idle = int(getattr(self, "calls", 0)), int(getattr(self, "idle", 0))
        if 2 * idle <= calls:
            return []
        return [
            f"asked for nothing in {idle / calls:.0%} of its steps, because its own "
            f"adversary was past the threshold ({self.metric} {self.harmless:g}): it may have been too weak; give it "
            "more steps or channels, or move the threshold"
        ]
