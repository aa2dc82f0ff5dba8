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
"""A smaller gap after the first epoch means gradients that hardly know labels: honest ones had .3, hijacked ones .1."""


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
    """One for every client whose gradients of the last epoch hardly depended on labels; in the first, they never do."""
    last = history[-1] if len(history) > 1 else {}
    gaps = {name.partition("/")[0]: gap for name, gap in last.items() if name.endswith("/gradient_gap")}
    return [
        f"{client.replace('_', ' ')}: the gradients it was sent hardly depend on labels ({gap:.2f}; honest ones 0.3 "
        "and more): its server may be training its encoder towards something other than the task"
        for client, gap in gaps.items()
        if gap < LEAST_GAP
    ]
