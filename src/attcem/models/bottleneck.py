"""The narrow place at the cut: fewer numbers cross the wire, and the attacker gets fewer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from torch import nn

from attcem.config import BottleneckConfig
from attcem.models.units import Shape, convolution, initialise
from attcem.naming import check_options


@dataclass(frozen=True)
class Bottleneck(BottleneckConfig):
    """How many channels (of tokens, features) cross, at which stride, through which kernel; checked and built."""

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"bottleneck {option.name} must be a whole number of at least 1, not {value!r}")
        if self.kernel % 2 == 0:
            raise ValueError(f"bottleneck kernel must be odd, not {self.kernel}: {self.kernel + 1} keeps the size")

    @classmethod
    def of(cls, given: Bottleneck | Mapping[str, int] | int | None) -> Bottleneck | None:
        """Read what a user may write: nothing, a number of channels, a mapping, or the thing itself."""
        if given is None or isinstance(given, Bottleneck):
            return given
        if isinstance(given, Mapping):
            check_options("bottleneck", given, [option.name for option in fields(cls)])
            return cls(**given)
        if isinstance(given, int):
            return cls(channels=given)
        raise ValueError(f"bottleneck must be None, a number of channels or a Bottleneck(...), not {given!r}")

    def narrow(self, latent: Shape) -> nn.Module:
        """The device's side: one convolution to the few channels; on tokens [n d], one linear layer from d."""
        if len(latent) == 2:
            if self.stride > 1:
                raise ValueError(f"bottleneck stride={self.stride} is for maps, vit sends tokens: leave out stride")
            return nn.Linear(latent[1], self.channels)
        layer = nn.Conv2d(latent[0], self.channels, self.kernel, self.stride, self.kernel // 2)
        initialise(layer)
        return layer

    def widen(self, latent: Shape) -> nn.Module:
        """The cloud's side: back to the shape before, so that the next unit fits."""
        if len(latent) == 2:
            return nn.Linear(self.channels, latent[1])
        channels, height, width = latent
        layers = nn.Sequential()
        if self.stride > 1:
            layers.add_module("upsample", nn.Upsample(size=(height, width), mode="nearest"))
        layers.add_module("convolution", convolution(self.channels, channels, kernel=self.kernel))
        initialise(layers)
        return layers
