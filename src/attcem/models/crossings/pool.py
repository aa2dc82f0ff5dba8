"""Averages over parts of the picture: the layout is gone, what is there stays."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from attcem.models.crossings.base import Crossing, enlarge
from attcem.models.units import Shape, convolution, initialise


@dataclass(frozen=True)
class Averages(Crossing):
    """What is averaged comes from a convolution of this `kernel` and `stride` to so many `channels`."""

    channels: int = 128
    kernel: int = 1
    stride: int = 1

    def convolution(self, features: Shape) -> nn.Module:
        return convolution(features[0], self.channels, kernel=self.kernel, stride=self.stride)


@dataclass(frozen=True)
class Pool(Averages):
    """k×k averages of ReLU(BN(W F)): `channels` numbers for each of size × size parts of the picture."""

    equation = "ẑ = s( mean_{k×k} ReLU( BN( W F ) ) )"
    size: int = 2

    def narrow(self, features: Shape) -> nn.Module:
        """A convolution, then the averages."""
        layers = nn.Sequential(self.convolution(features), nn.AdaptiveAvgPool2d((self.size, self.size)))
        initialise(layers)
        return layers

    def widen(self, features: Shape, latent: Shape) -> nn.Module:
        """Every part spread over its place."""
        return enlarge(latent[0], features)


@dataclass(frozen=True)
class Vector(Averages):
    """The average over the whole picture of ReLU(BN(W F)): `channels` numbers, no layout at all."""

    equation = "ẑ = s( mean ReLU( BN( W F ) ) )"
    channels: int = 512

    def narrow(self, features: Shape) -> nn.Module:
        """A convolution, then one average."""
        layers = nn.Sequential(self.convolution(features), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        initialise(layers)
        return layers

    def widen(self, features: Shape, latent: Shape) -> nn.Module:
        """The vector at every place."""
        return nn.Sequential(nn.Unflatten(1, (self.channels, 1, 1)), enlarge(self.channels, features))
