"""What an attack is: a value called with a View that returns its guess of the attacked images."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from attcem.types import Images, Released, View

Pictures = Float[Tensor, "b c h w"]
PerImage = Float[Tensor, " b"]

QUERY, WHITE_BOX = frozenset({"public", "queries"}), frozenset({"public", "queries", "weights", "gradients"})
"""What most attacks need: to query the device with public images; its weights and gradients as well."""


@dataclass(frozen=True)
class Reconstruction:
    """Guessed images in [0,1] of the first targets, all of them or as many as the attack can afford.

    `curve` is the attacker's own validation loss, `flags` say why it may be too weak, `gain` is the share of its error
    that one more doubling of its effort might take off: what the last one did, or None if it cannot tell. `state` is
    what the attack, or one that builds on it, can go on from after an interruption.
    """

    images: Pictures
    curve: list[float] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    gain: float | None = None
    state: dict[str, Tensor] = field(default_factory=dict, repr=False)


class Attack(ABC):
    """An attack holds its settings and nothing about the victim; its guess depends on the view and the seed only."""

    start: Attack | None = None  # the attack whose work it goes on with, found in the workbook

    @property
    def about(self) -> str:
        """One line for `attcem list`."""
        return (inspect.getdoc(type(self)) or type(self).__name__).partition("\n")[0]

    @property
    def needs(self) -> frozenset[str]:
        """What the threat model must grant: names of `attcem.config.GRANTS`."""
        return self.start.needs if self.start else QUERY

    @property
    def effort(self) -> float:
        """A rough cost, to tell how much time is left: one picture, once through the device and back, is 1."""
        return 50_000

    @property
    def builds_on(self) -> Attack:
        """Its start; itself if it starts afresh."""
        return self.start or self

    @property
    def observations(self) -> int:
        """How often the device must have sent each image; the worst case counts attacks that need one."""
        return 1

    @abstractmethod
    def __call__(self, view: View, *, seed: int = 0, progress: bool = False) -> Reconstruction:
        """Reconstruct the images behind `view.targets`."""

    def recall(self, view: View, found: Reconstruction, *, seed: int = 0) -> None:
        """Put what it found before into the workbook, for attacks that build on it."""
        view.workbook.finds[self, seed] = found

    def brief(self) -> Attack:
        """The same attack with an effort of seconds: enough against a device that hides nothing."""
        return self


class Probe(ABC):
    """An attack that is after something other than pixels: the attacker answers, the judge scores."""

    needs = QUERY  # what the threat model must grant, as for an attack

    @abstractmethod
    def __call__(self, view: View, *, seed: int = 0) -> Tensor:
        """One answer per target; `view.gallery` holds candidates, the attacked images among them in unknown order."""

    @abstractmethod
    def score(self, answers: Tensor, truth: Images, gallery: Images, public: Images) -> Mapping[str, Tensor]:
        """Metric → one value in [0,1] per target, 1 where the attacker was right."""

    @abstractmethod
    def chance(self, truth: Images, gallery: Images, public: Images) -> Mapping[str, float]:
        """The same metrics for who guesses without looking at the latents."""


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Random numbers from this seed; whoever draws afterwards draws as if nothing had been drawn."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def update(optimiser: torch.optim.Optimizer, loss: Tensor, clipped: Iterable[Tensor] = ()) -> None:
    """One step; before it, the gradient of the parameters that are `clipped` is cut to length 1."""
    optimiser.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(clipped, 1.0)
    optimiser.step()


def noise_variance(first: Released, second: Released) -> Float[Tensor, "*latent"]:
    """Variance that the release adds, position by position, from two sends of the same images."""
    return (first - second).square().mean(0) / 2
