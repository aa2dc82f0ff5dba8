"""What a defence saw while it trained: a few steps of every epoch, averaged."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

EVERY = 16  # one step in so many is looked at closely, so that looking costs next to nothing


class Diagnostics:
    """Collects readings of an epoch: numbers, and vectors of a fixed length."""

    def __init__(self) -> None:
        self.taken: dict[str, list[Tensor]] = defaultdict(list)

    @staticmethod
    def due(step: int) -> bool:
        return step % EVERY == 0

    def take(self, readings: Mapping[str, Tensor]) -> None:
        for name, value in readings.items():
            self.taken[name].append(value.detach())

    def close(self) -> tuple[dict[str, float], dict[str, list[float]]]:
        """The epoch's means: of numbers, for the history, and of vectors; then begin anew."""
        means = {name: torch.stack(values).double().mean(0) for name, values in self.taken.items()}
        self.taken.clear()
        numbers = {name: mean.item() for name, mean in means.items() if mean.ndim == 0}
        return numbers, {name: mean.tolist() for name, mean in means.items() if mean.ndim == 1}


def close_together(everyone: Iterable[Diagnostics]) -> tuple[dict[str, float], dict[str, list[float]]]:
    """The epoch's means, averaged over those who took part."""
    together = Diagnostics()
    for one in everyone:
        for found in one.close():
            together.take({name: torch.tensor(value, dtype=torch.float64) for name, value in found.items()})
    return together.close()


def gradient_readings(task: Tensor, penalty: Tensor) -> dict[str, Tensor]:
    """How hard task and weighted penalty pull at the latent, and whether they pull the same way."""
    strength, pull = task.norm(), penalty.norm()
    cosine = (task * penalty).sum() / (strength * pull).clamp_min(torch.finfo(task.dtype).tiny)
    return {"task_gradient": strength, "penalty_gradient": pull, "gradient_cosine": cosine}
