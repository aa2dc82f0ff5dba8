"""Linear probe: how much of the class a linear map reads off the released latent."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor

from attcem.attacks.base import Probe, seeded
from attcem.attacks.regression import STRENGTHS, TrainingSet, ridge
from attcem.types import Images, View

DECAYS = (1e-4, 1e-3, 1e-2, 1e-1)  # strengths of logistic regression to choose from


def logistic(
    features: Float[Tensor, "n d"], labels: Int64[Tensor, " n"], classes: int, strength: float, steps: int
) -> tuple[Float[Tensor, "d classes"], Float[Tensor, " classes"]]:
    """Weights and offsets that minimise the cross-entropy + strength/2 · ‖W‖², by L-BFGS."""
    weights = features.new_zeros(features.shape[1], classes, requires_grad=True)
    offsets = features.new_zeros(classes, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights, offsets], max_iter=steps, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = F.cross_entropy(features @ weights + offsets, labels) + strength / 2 * weights.square().sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    return weights.detach(), offsets.detach()


@dataclass(frozen=True)
class LinearProbe(Probe):
    """Names the class by a linear map of the latent: ridge or logistic, whichever is right more often on own images."""

    steps: int = 30  # of L-BFGS, for every strength of the logistic regression

    def __call__(self, view: View, *, seed: int = 0) -> Int64[Tensor, " n"]:
        with seeded(seed):
            data = TrainingSet.of(view, seed)
        labels = view.public.y.to(view.targets.device)
        own, held_out = labels[data.own.of], labels[data.held_out.of]
        classes = int(labels.max()) + 1
        shares = F.one_hot(own, classes).float().mean(0)
        maps = [(w, shares) for w in ridge(data.own.features, F.one_hot(own, classes) - shares, STRENGTHS)]
        maps += [logistic(data.own.features, own, classes, s, self.steps) for s in DECAYS]
        right = [((data.held_out.features @ w + b).argmax(1) == held_out).float().mean().item() for w, b in maps]
        weights, offsets = maps[right.index(max(right))]
        return (data.read(view.targets) @ weights + offsets).argmax(1).cpu()

    def score(self, answers: Tensor, truth: Images, gallery: Images, public: Images) -> Mapping[str, Tensor]:
        return {"accuracy": (answers == truth.y).float()}

    def chance(self, truth: Images, gallery: Images, public: Images) -> Mapping[str, float]:
        """The share of the largest class: what the best answer for all would score."""
        return {"accuracy": truth.y.bincount().max().item() / len(truth)}
