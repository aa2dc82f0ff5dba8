"""What crosses the cut: two halves that belong together, one on the device and one in the cloud."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar

from torch import nn

from attcem.models.units import Shape, convolution, initialise


@dataclass(frozen=True)
class Crossing(ABC):
    """How the map at the cut becomes the latent, and what the cloud makes of it.

    With `normalise`, batch norm comes before the squashing, so that the latent fills its range and noise means the same
    everywhere. The `cloud` goes on with the rest of the `backbone`, or with a small `head` in its place. With
    `condense`, two dense layers on the device reduce what was kept to so many values.
    """

    CLOUDS: ClassVar[tuple[str, ...]] = ("backbone", "head")
    called: ClassVar[str] = "crossing"  # what users call it in their settings
    equation: ClassVar[str] = ""  # what it lets through, before the squashing s
    normalise: bool = True
    cloud: str = "head"
    condense: int | None = None

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            counts = option.type == "int" or (option.type == "int | None" and value is not None)
            if counts and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ValueError(f"{self.called} {option.name} must be a whole number of at least 1, not {value!r}")
            if option.name == "kernel" and value % 2 == 0:
                raise ValueError(f"{self.called} kernel must be odd, not {value}: {value + 1} keeps the size")
        if self.cloud not in self.CLOUDS:
            raise ValueError(f"{self.called} cloud must be {' or '.join(self.CLOUDS)}, not {self.cloud!r}")

    @abstractmethod
    def narrow(self, features: Shape) -> nn.Module:
        """The device's side: from a map of this shape to the latent, before normalisation and squashing."""

    @abstractmethod
    def widen(self, features: Shape, latent: Shape) -> nn.Module:
        """The cloud's side: from the latent back to a map of this shape, for the rest of the backbone."""


def enlarge(channels: int, features: Shape) -> nn.Sequential:
    """A small map, spread over the size of the features, and back to their channels."""
    layers = nn.Sequential(nn.Upsample(size=tuple(features[1:]), mode="nearest"), convolution(channels, features[0]))
    initialise(layers)
    return layers
