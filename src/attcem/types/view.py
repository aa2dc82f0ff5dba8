"""What an attacker holds."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

from jaxtyping import Float, Int64
from torch import Tensor

from attcem.types.images import Images, Latent, Released
from attcem.types.people import People


@runtime_checkable
class Oracle(Hashable, Protocol):
    """The device as a black box: images in, what it would send out, with fresh noise at every query."""

    def __call__(self, x: Float[Tensor, "b c h w"], repeats: int = 1) -> Released:
        """What the device sends for these images, averaged over so many queries of each."""

    def record(self, batches: Iterable[Float[Tensor, "b c h w"]]) -> Recording:
        """Images that will be queried often: encoded once, released afresh each time."""


@runtime_checkable
class Recording(Protocol):
    """Images that the device has encoded once; a draw of them equals a query, without the cost of the encoder."""

    def __call__(self, index: Int64[Tensor, " b"], repeats: int = 1) -> Released:
        """What the device sends for some of the images, averaged over so many queries of each."""


@dataclass(frozen=True)
class Device:
    """The device as someone with its weights runs it: differentiable, with fresh noise at every release."""

    encode: Callable[[Float[Tensor, "b c h w"]], Latent]
    release: Callable[[Latent], Released]


@dataclass(frozen=True)
class Deployed:
    """Both halves as they run outside Python, on what is released: the device has no gradient, and no clean latent."""

    device: Device
    cloud: Callable[[Released], Float[Tensor, "b classes"]]


Made = TypeVar("Made")


@dataclass
class Workbook:
    """What attacks on a view have made, by seed, and later attacks build on; whoever asks first makes it."""

    recordings: dict[tuple[Hashable, int], Any] = field(default_factory=dict)
    models: dict[tuple[Hashable, int], Any] = field(default_factory=dict)
    finds: dict[tuple[Hashable, int], Any] = field(default_factory=dict)  # of attacks, before they were interrupted
    pages: dict[Hashable, Workbook] = field(default_factory=dict)

    def recording(self, oracle: Hashable, seed: int, make: Callable[[], Made]) -> Made:
        return once(self.recordings, (oracle, seed), make)

    def model(self, settings: Hashable, seed: int, make: Callable[[], Made]) -> Made:
        return once(self.models, (settings, seed), make)

    def page(self, variant: Hashable, *, same_images: bool) -> Workbook:
        """The workbook of an attacker that owns or sees something else; with the same images, the same recordings."""
        return self.pages.setdefault(variant, Workbook(self.recordings if same_images else {}))


def once(made: dict[tuple[Hashable, int], Any], key: tuple[Hashable, int], make: Callable[[], Made]) -> Made:
    if key not in made:
        made[key] = make()
    return made[key]


@dataclass(frozen=True)
class View:
    """Everything an attacker holds. What the threat model does not grant is None.

    The attacker is the cloud: it owns public images, sees the latents to invert, and runs the cloud half on them.
    """

    public: Images
    oracle: Oracle | None
    targets: Released
    cloud: Callable[[Released], Float[Tensor, "b classes"]] | None = None  # the cloud half: logits, differentiable
    resend: Callable[[int], Released] | None = None  # sends the first so many attacked images again, with fresh noise
    device: Device | None = None
    gallery: Images | None = None  # candidates with the attacked images among them: for same_picture only
    people: People | None = None  # other photos of the attacked people: for identity only
    workbook: Workbook = field(default_factory=Workbook, repr=False)
