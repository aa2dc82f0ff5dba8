"""Linear probe: how much of the class a linear map reads off the released latent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor

from attcem.attacks.base import Probe
from attcem.attacks.pairs import hold_out
from attcem.data.loader import in_order
from attcem.types import Images, Oracle, Released, View

STRENGTHS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""Ridge strengths to choose from; 1 weighs as much as a standardised feature."""

DECAYS = (1e-4, 1e-3, 1e-2, 1e-1)
"""The same for logistic regression."""

ROWS, WIDE, BUDGET = 16_384, 4096, 2**27
"""Most releases to learn from; the same for latents of more than WIDE values; most values altogether."""


Features = Callable[[Released], Float[Tensor, "b d"]]


def values(released: Released) -> Float[Tensor, "b d"]:
    """The latent's values as they are."""
    return released.flatten(1)


@dataclass(frozen=True)
class Examples:
    """What fresh releases of public images look like, and for each row which image it was."""

    features: Float[Tensor, "n d"]
    of: Int64[Tensor, " n"]


@dataclass(frozen=True)
class Lesson:
    """What a probe learns from: standardised releases of public images, some of them held out to choose by."""

    own: Examples
    held_out: Examples
    features: Features
    mean: Float[Tensor, " d"]
    scale: Float[Tensor, " d"]

    @classmethod
    def of(cls, view: View, seed: int, features: Features = values) -> Lesson:
        """Query the device for every public image that memory has room for, more than once where it adds noise."""
        if view.oracle is None:
            raise ValueError("a probe learns from queries: choose a threat model that grants them, query or white_box")
        size = view.targets[0].numel()
        rows = min(ROWS if size <= WIDE else WIDE, max(64, BUDGET // size))
        numbered = Images(view.public.x, torch.arange(len(view.public)))
        own, held_out = (
            examples(view.oracle, part, most, features, view.targets.device)
            for part, most in zip(hold_out(numbered, seed, share=0.2), (rows, rows // 4), strict=True)
        )
        mean, spread = own.features.mean(0), own.features.std(0)
        scale = torch.where(spread > 1e-6 * mean.abs().clamp_min(1), spread, 1)
        for part in (own, held_out):
            part.features.sub_(mean).div_(scale)
        return cls(own, held_out, features, mean, scale)

    def read(self, released: Released) -> Float[Tensor, "b d"]:
        """Other releases, standardised in the same way."""
        return (self.features(released) - self.mean) / self.scale


def examples(oracle: Oracle, images: Images, most: int, features: Features, device: torch.device) -> Examples:
    """At most so many releases: each image once, and again as long as there is room and its release varies."""
    images = images[:most]
    recording = oracle.record(x for x, _ in in_order(images, device=device))
    index = torch.arange(len(images), device=device)
    varies = not torch.equal(recording(index[:8]), recording(index[:8]))
    index = index.repeat(most // len(images) if varies else 1)
    seen = torch.cat([features(recording(part)) for part in index.split(256)])
    return Examples(seen, images.y.to(device)[index])


def ridge(
    features: Float[Tensor, "n d"], wanted: Float[Tensor, "n p"], strengths: Sequence[float]
) -> Float[Tensor, "s d p"]:
    """(XᵀX + s·n·I)⁻¹ XᵀY for every strength s, through XXᵀ where there are more features than rows.

    In double precision, part by part: a small strength would drown in the rounding of a large sum.
    """
    rows, size = features.shape
    wide = size > rows
    across = features.T if wide else features
    gram = product(across, across)
    right = wanted.double() if wide else product(features, wanted)
    solutions = []
    for strength in strengths:
        raised = gram + strength * rows * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
        solved = torch.cholesky_solve(right, torch.linalg.cholesky(raised)).to(features.dtype)
        solutions.append(features.T @ solved if wide else solved)
    return torch.stack(solutions)


def product(a: Float[Tensor, "n i"], b: Float[Tensor, "n j"]) -> Float[Tensor, "i j"]:
    """AᵀB in double precision, with only a part of either in double precision at a time."""
    total = torch.zeros(a.shape[1], b.shape[1], dtype=torch.double, device=a.device)
    for some, other in zip(a.split(1024), b.split(1024), strict=True):
        total.addmm_(some.double().T, other.double())
    return total


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

    steps: int = 30
    """Of L-BFGS, for every strength of the logistic regression."""

    def __call__(self, view: View, *, seed: int = 0) -> Int64[Tensor, " n"]:
        """The class of every target."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            lesson = Lesson.of(view, seed)
        labels = view.public.y.to(view.targets.device)
        own, held_out = labels[lesson.own.of], labels[lesson.held_out.of]
        classes = int(labels.max()) + 1
        shares = F.one_hot(own, classes).float().mean(0)
        solved = ridge(lesson.own.features, F.one_hot(own, classes) - shares, STRENGTHS)
        maps = [(weights, shares) for weights in solved]
        maps += [logistic(lesson.own.features, own, classes, s, self.steps) for s in DECAYS]
        right = [((lesson.held_out.features @ w + b).argmax(1) == held_out).float().mean().item() for w, b in maps]
        weights, offsets = maps[right.index(max(right))]
        return (lesson.read(view.targets) @ weights + offsets).argmax(1).cpu()

    def score(self, answers: Tensor, truth: Images, gallery: Images, public: Images) -> Mapping[str, Tensor]:
        """1 where the class is right."""
        return {"accuracy": (answers == truth.y).float()}

    def chance(self, truth: Images, gallery: Images, public: Images) -> Mapping[str, float]:
        """The share of the largest class: what the best answer for all would score."""
        return {"accuracy": truth.y.bincount().max().item() / len(truth)}
