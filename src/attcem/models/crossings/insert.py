"""A crossing between two halves: the device's side ends the encoder, the cloud's begins the decoder."""

from __future__ import annotations

import math

from jaxtyping import Float
from torch import Tensor, nn

from attcem.models.crossings.base import Crossing
from attcem.models.crossings.map import Map
from attcem.models.units import Shape, shape_after

HIDDEN, ON_THE_DEVICE = 512, 128  # width of the small head, and of the dense layer with which a device condenses


def insert(
    crossing: Crossing,
    encoder: nn.Sequential,
    decoder: nn.Sequential,
    rest: nn.Module,
    *,
    features: Shape,
    classes: int,
) -> Shape:
    """Put a crossing between an encoder and the rest of its network; returns the shape of what crosses."""
    if len(features) == 1:
        raise ValueError("the network has a vector at the cut, without places to choose from: cut earlier")
    tokens = len(features) == 2 and not isinstance(crossing, Map)
    seen = (features[1], features[0], 1) if tokens else features
    narrow = nn.Sequential(TokensAsMap(), crossing.narrow(seen)) if tokens else crossing.narrow(features)
    kept = latent = shape_after(narrow, features)
    encoder.add_module("bottleneck", narrow)
    if crossing.condense:
        latent = (crossing.condense,)
        encoder.add_module("condense", condense(kept, crossing.condense))
    if crossing.normalise:
        encoder.add_module("normalised", Normalised(latent))
    if crossing.cloud == "head":
        decoder.add_module("head", small_head(latent, classes))
        return latent
    if crossing.condense:
        decoder.add_module(
            "expand", nn.Sequential(nn.Linear(crossing.condense, math.prod(kept)), nn.Unflatten(1, kept))
        )
    widen = crossing.widen(seen, kept)
    decoder.add_module("bottleneck", nn.Sequential(widen, MapAsTokens()) if tokens else widen)
    decoder.add_module("units", rest)
    return latent


class TokensAsMap(nn.Module):
    """Tokens [b n d] as a map of n places in a column."""

    def forward(self, x: Float[Tensor, "b n d"]) -> Float[Tensor, "b d n 1"]:
        """Features become channels."""
        return x.transpose(1, 2).unsqueeze(3)


class MapAsTokens(nn.Module):
    """A map of n places in a column as tokens [b n d]."""

    def forward(self, x: Float[Tensor, "b d n 1"]) -> Float[Tensor, "b n d"]:
        """Channels become features."""
        return x.squeeze(3).transpose(1, 2)


class Normalised(nn.Module):
    """Batch norm of every channel of a map, or of every number of a latent without positions."""

    def __init__(self, latent: Shape) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(latent[0]) if len(latent) == 3 else nn.BatchNorm1d(math.prod(latent))

    def forward(self, z: Float[Tensor, " b *latent"]) -> Float[Tensor, " b *latent"]:
        """Mean 0 and variance 1 over the batch, scaled and shifted by what is learned."""
        return self.norm(z) if z.ndim == 4 else self.norm(z.flatten(1)).view_as(z)


def condense(kept: Shape, values: int) -> nn.Sequential:
    """W₂ ReLU(BN(W₁ t)): after pooling, a dense layer costs the device little."""
    dense = nn.Linear(math.prod(kept), ON_THE_DEVICE, bias=False)
    return nn.Sequential(
        nn.Flatten(), dense, nn.BatchNorm1d(ON_THE_DEVICE), nn.ReLU(), nn.Linear(ON_THE_DEVICE, values)
    )


def small_head(latent: Shape, classes: int) -> nn.Sequential:
    """Two hidden layers instead of the rest of a backbone."""
    layers = nn.Sequential(nn.Flatten())
    for width_in, width_out in ((math.prod(latent), HIDDEN), (HIDDEN, HIDDEN)):
        layers.extend([nn.Linear(width_in, width_out, bias=False), nn.BatchNorm1d(width_out), nn.ReLU()])
    return layers.append(nn.Linear(HIDDEN, classes))
