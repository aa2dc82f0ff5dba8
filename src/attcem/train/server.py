"""Who holds the cloud half while clients train, and what a client can notice of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from attcem.types import Released

LEAST_GAP = 0.15
"""Gradients whose gap never was this wide hardly know labels: hijacked ones reached .1 at most, honest ones .25."""


@runtime_checkable
class Server(Protocol):
    """Answers what a client releases, with the loss whose gradient the client is then sent."""

    steers: bool  # whether that is anything but the loss of the task

    def answer(self, released: Released, labels: Int64[Tensor, " b"], loss: Tensor, cloud: nn.Module) -> Tensor:
        """What is differentiated; `loss` is that of the task on the cloud half."""


class Honest:
    """Sends the gradient of the task, and looks at nothing."""

    steers = False

    def answer(self, released: Released, labels: Int64[Tensor, " b"], loss: Tensor, cloud: nn.Module) -> Tensor:
        return loss


HONEST = Honest()


@torch.no_grad()
def gradient_gap(gradient: Float[Tensor, " b *latent"], labels: Int64[Tensor, " b"]) -> float:
    """Mean cosine between gradients of one class − that between classes; NaN where a batch has no such pairs.

    The gradient of a task depends on labels, that of a hijacker does not (Fu et al., "Focusing on Pinocchio's Nose",
    NDSS 2023).
    """
    directions = F.normalize(gradient.flatten(1).float(), dim=1)
    cosines, same = directions @ directions.T, labels[:, None] == labels
    other = ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    return (cosines[same & other].mean() - cosines[~same].mean()).item()


def gradient_flags(history: Sequence[Mapping[str, float]]) -> list[str]:
    """One for every client whose gradients depended on labels in no epoch.

    The first alone says nothing, as nothing is learned yet; late ones little, as all is learned by then.
    """
    names = dict.fromkeys(name for row in history for name in row if name.endswith("/gradient_gap"))
    widest = {name: max(row[name] for row in history if name in row) for name in names} if len(history) > 1 else {}
    return [
        f"{name.partition('/')[0].replace('_', ' ')}: the gradients it was sent hardly depend on labels (gap "
        f"{gap:.2f}, 0.25 and more for a task): its server may be training its encoder towards something else"
        for name, gap in widest.items()
        if gap < LEAST_GAP
    ]
