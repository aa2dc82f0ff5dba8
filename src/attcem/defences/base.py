"""The defence contract: a few hooks, each with a neutral default."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from functools import wraps
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attcem.links import snake_case
from attcem.maths import DISTRIBUTIONS
from attcem.types import Batch, Latent, Released

if TYPE_CHECKING:
    from attcem.defences.guard import Guard

NOISE, INPUT_GRADIENT, WEIGHTED = "noise", "input_gradient", "weighted"
"""What a defence may need: Gaussian noise in its guard, without which it means nothing; latents that hang on the
images, for a penalty that is differentiated through the encoder; the penalty's weight on its own parameters, too,
because they shape what is released."""
NEEDS = (NOISE, INPUT_GRADIENT, WEIGHTED)
HOOKS = ("setup", "attach", "release", "penalty", "observe", "review")


class Stage(IntEnum):
    """Where in the release chain a defence acts: a guard always releases in this order.

    What a TRANSFORM does comes before any noise: the noise is then on the transformed latent, not on the encoder's.
    """

    TRANSFORM = 0
    NOISE = 1
    LOCAL_DP = 2
    DROPOUT = 3
    PRUNING = 4
    ADVERSARIAL = 5
    WIRE = 6


def nothing(z: Latent) -> Float[Tensor, ""]:
    """A zero that keeps the graph: its gradient is zero even where the latent is not a number."""
    return z.masked_fill(torch.ones_like(z, dtype=torch.bool), 0.0).sum()


def finite(penalty: Callable[[Any, Batch], Tensor]) -> Callable[[Any, Batch], Tensor]:
    """The same penalty, with zero in the place of a value or reading that is not finite, counted as lost."""

    @wraps(penalty)
    def checked(self: Any, batch: Batch) -> Tensor:
        value = penalty(self, batch)
        if not isinstance(value, Tensor) or value.numel() != 1:
            found = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"type {type(value).__name__}"
            raise ValueError(f"the penalty of {self.kind} must be a scalar tensor, not something of {found}: mean it")
        broken = [name for name, reading in batch.readings.items() if not reading.isfinite().all()]
        batch.readings.update({name: torch.zeros_like(batch.readings[name]) for name in broken})
        if broken or not value.isfinite():
            batch.readings["lost"] = torch.ones(())
        return value if value.isfinite() else nothing(batch.z)

    return checked


class Defence(nn.Module):
    """Changes what leaves the device (`release`), how the encoder is trained (`penalty`), or both.

    `lam` weighs the penalty's gradient in the encoder, `warmup` is the number of epochs before it starts, `sigma` the
    Gaussian noise that it adds. A defence of your own overrides the hooks it needs. Its `kind` is its name in the table
    of defences, or its class's in snake_case; `strength` names the option that sets how hard it protects.
    """

    kind: str = "defence"
    strength: str = "lam"
    stage: Stage = Stage.ADVERSARIAL
    sigma: float = 0.0
    lam: float = 1.0
    warmup: int = 0
    needs: frozenset[str] = frozenset()
    distribution: str | None = None
    """Of the random numbers that `release` takes as a second argument, as many as the latent has, if it draws any."""
    hides_earlier_noise: bool = False
    """Whether it changes the latent before it adds its own noise, so that variances of earlier links do not add."""
    release_all: Callable[[Latent], Released]
    """What all links of its guard release together; its own release while it is in none."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.kind = snake_case(cls.__name__)
        if not any(getattr(cls, hook) is not getattr(Defence, hook) for hook in HOOKS):
            for name in vars(cls):
                for hook in difflib.get_close_matches(name, HOOKS, 1, 0.8):
                    raise ValueError(f"{cls.__name__}.{name} is never called: did you mean {hook!r}?")
        if "penalty" in vars(cls):
            cls.penalty = finite(cls.penalty)  # type: ignore[assignment, method-assign]

    def __init__(self) -> None:
        super().__init__()
        self.release_all = self.release

    def setup(self, *, latent: Sequence[int], classes: int, sigma: float) -> None:
        """Make parameters for latents of this shape behind the guard's noise; called before the optimiser exists."""

    def attach(self, encoder: nn.Module, borrow: Callable[[str], None] | None = None) -> None:
        """Meet the device's half; `borrow` fills it with that of another run, and is None where it was trained."""

    def release(self, z: Latent) -> Released:
        """What leaves the device: in training, evaluation, attack and deployment alike."""
        return z

    def drawn(self, z: Latent, noise: Tensor | None) -> Tensor:
        """The random numbers of a release: those that are given, or fresh ones."""
        return DISTRIBUTIONS[self.distribution or "normal"](z) if noise is None else noise

    def pieces(self, z: Latent) -> dict[str, Tensor]:
        """What it releases, taken apart, if that has parts: the audit asks what each would tell without the others."""
        return {}

    def penalty(self, batch: Batch) -> Float[Tensor, ""]:
        """A scalar that the encoder is trained to make small; it sees the clean latents."""
        return batch.z.new_zeros(())

    def observe(self, batch: Batch) -> None:
        """Update own state after a training step: refit clusters, step an adversary."""

    def review(self, batches: Iterable[Batch]) -> None:
        """Look at all private images at an epoch's end, in evaluation mode; latents are computed as they are read."""

    @property
    def equation(self) -> str:
        """What it releases, or asks the encoder to make small, in the symbols of docs/notation.md."""
        return ""

    @property
    def flags(self) -> list[str]:
        """What a reader of the result must know about how training went."""
        return []

    @property
    def penalises(self) -> bool:
        """Whether training it has anything to minimise."""
        return self.lam > 0 and type(self).penalty is not Defence.penalty

    def __add__(self, other: Defence | Guard) -> Guard:
        from attcem.defences.guard import Guard

        return Guard(self, other)


class Undefended(Defence):
    """Releases the clean latent: the baseline that every defence is measured against."""

    equation = "z = ẑ"
    strength = ""
