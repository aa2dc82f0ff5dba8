"""A map of fewer channels: the narrow place at the cut that keeps the picture's layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

from torch import nn

from attcem.models.crossings.base import Crossing
from attcem.models.units import Shape, convolution, initialise
from attcem.naming import check_options


@dataclass(frozen=True)
class Map(Crossing):
    """One convolution to a few `channels`, at some stride; of tokens [n d], one linear layer from d.

    The bottleneck of the first edition, and what every other form is measured against.
    """

    equation = "ẑ = s( W ∗ F )"
    called: ClassVar[str] = "bottleneck"
    normalise: bool = False
    cloud: str = "backbone"
    channels: int = 8
    stride: int = 1
    kernel: int = 3

    @classmethod
    def of(cls, given: Map | Mapping[str, int] | int) -> Map:
        """Read what a user may write as a bottleneck: a number of channels, a mapping, or the thing itself."""
        if isinstance(given, Map):
            return given
        if isinstance(given, Mapping):
            check_options("bottleneck", given, [option.name for option in fields(cls)])
            return cls(**given)  # type: ignore[arg-type]
        if isinstance(given, int):
            return cls(channels=given)
        raise ValueError(f"bottleneck must be None, a number of channels or a mapping of options, not {given!r}")

    def narrow(self, features: Shape) -> nn.Module:
        """The device's side: to the few channels."""
        if len(features) == 2:
            if self.stride > 1:
                raise ValueError(f"bottleneck stride={self.stride} is for maps, vit sends tokens: leave out stride")
            return nn.Linear(features[1], self.channels)
        layer = nn.Conv2d(features[0], self.channels, self.kernel, self.stride, self.kernel // 2)
        initialise(layer)
        return layer

    def widen(self, features: Shape, latent: Shape) -> nn.Module:
        """Back to the shape before, so that the next unit fits."""
        if len(features) == 2:
            return nn.Linear(self.channels, features[1])
        layers = nn.Sequential()
        if self.stride > 1:
            layers.add_module("upsample", nn.Upsample(size=tuple(features[1:]), mode="nearest"))
        layers.add_module("convolution", convolution(self.channels, features[0], kernel=self.kernel))
        initialise(layers)
        return layers
