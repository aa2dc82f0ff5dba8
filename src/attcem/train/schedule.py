"""Recipes: an optimiser's settings and a learning rate that depends only on how far training is."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import nn

from attcem.config import TrainConfig
from attcem.defences import Defence, Guard
from attcem.naming import look_up


def multi_step(progress: float, drops: tuple[float, ...] = (0.25, 0.5, 0.75), gamma: float = 0.2) -> float:
    """Constant, times gamma after each drop: γ^(number of drops passed)."""
    return gamma ** sum(progress >= drop for drop in drops)


def one_cycle(progress: float, rise: float = 0.2) -> float:
    """Linear rise to 1, then a half cosine down to 0."""
    if progress < rise:
        return progress / rise + 1e-3
    return 0.5 * (1 + math.cos(math.pi * (progress - rise) / (1 - rise)))


def ramp_up(epochs: float, ramp: float) -> float:
    """A penalty's share of its full weight so many epochs after its warm-up: nothing before, all after the ramp.

    >>> [ramp_up(epochs, ramp=2.0) for epochs in (-1, 0, 1, 3)]
    [0.0, 0.0, 0.5, 1.0]
    """
    return float(epochs >= 0) if ramp == 0 else min(1.0, max(0.0, epochs / ramp))


@dataclass(frozen=True)
class Recipe:
    """SGD with momentum and a schedule; `clip` bounds the gradient's norm."""

    about: str
    lr: float
    factor: Callable[[float], float]
    weight_decay: float = 5e-4
    nesterov: bool = False
    w_lr: bool = False
    clip: float = math.inf

    def rate(self, progress: float) -> float:
        return self.lr * self.factor(progress)

    def penalty_weight(self, rate: float, fine_tuning: bool) -> float:
        """w_lr (docs/notation.md): 1 if lr < 4.1e-4 or fine-tuning, else 0.001 / lr."""
        if not self.w_lr or fine_tuning or rate < 4.1e-4:
            return 1.0
        return 0.001 / rate

    def optimiser(self, weights: list[nn.Parameter], guard: list[nn.Parameter]) -> torch.optim.Optimizer:
        """Two groups from step 1: the split network, and the defence's own parameters without weight decay."""
        groups: list[dict] = [{"params": weights, "weight_decay": self.weight_decay}]
        if guard:
            groups.append({"params": guard, "weight_decay": 0.0})
        return torch.optim.SGD(groups, lr=self.lr, momentum=0.9, nesterov=self.nesterov)


RECIPES = {
    "modern": Recipe(
        "Nesterov SGD over one cycle with clipped gradients: trains well in 5 to 30 epochs.",
        lr=0.1,
        factor=one_cycle,
        nesterov=True,
        clip=5.0,
    ),
    "original": Recipe(
        "The published one: SGD with three drops, penalties weighed by 0.001/lr while lr is large.",
        lr=0.05,
        factor=multi_step,
        w_lr=True,
    ),
}


def recipe_for(config: TrainConfig) -> Recipe:
    recipe = look_up("recipe", config.recipe, RECIPES)
    given = {name: getattr(config, name) for name in ("lr", "weight_decay", "w_lr")}
    return replace(recipe, **{name: value for name, value in given.items() if value is not None})


def first_candidate(guard: Guard, epochs: int) -> int:
    """The first epoch that may be chosen as best.

    Epochs before the penalty starts, and those it has barely shaped, are more accurate and leak more: choosing
    them would quietly ship an undefended network. With a penalty, or what acts at an epoch's end, only the second half
    after warm-up counts.
    """
    starts = [link.warmup for link in guard.links if link.penalises or type(link).review is not Defence.review]
    if not starts:
        return 0
    if max(starts) >= epochs:
        raise ValueError(
            f"the defence starts after {max(starts)} epochs but training ends after {epochs}: raise epochs"
        )
    return (max(starts) + epochs) // 2
