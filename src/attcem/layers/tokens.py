"""Latents as sets of tokens [b t d]: whole, position by position, averaged over positions, or projected."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor, nn

WIDEST = 4096
"""Attention has weights in proportion to the square of its tokens' width: beyond this they would dwarf the network."""


def features(latent: Sequence[int]) -> int:
    """Numbers at each position of a map [c h w], in each token of a set [n d], or in a vector [d]."""
    return latent[1] if len(latent) == 2 else latent[0]


def positions(z: Float[Tensor, " b *latent"]) -> Float[Tensor, "b t d"]:
    """The positions of a map, the tokens of a set, or a vector as the only one."""
    if z.ndim == 4:
        return z.flatten(2).transpose(1, 2)
    return z if z.ndim == 3 else z.unsqueeze(1)


class Tokens(nn.Module):
    """A way to see a latent [b *latent] as tokens [b t width]."""

    width: int

    def __init__(self, latent: Sequence[int], width: int) -> None:
        super().__init__()


class Flat(Tokens):
    """The whole latent is one token: [b 1 C·H·W]."""

    def __init__(self, latent: Sequence[int], width: int) -> None:
        super().__init__(latent, width)
        self.width = math.prod(latent)

    def forward(self, z: Float[Tensor, " b *latent"]) -> Float[Tensor, "b 1 d"]:
        """Everything of a sample at once."""
        return z.flatten(1).unsqueeze(1)


class Spatial(Tokens):
    """Every position is a token: [b H·W C]; tokens stay what they are, and a vector is one token."""

    def __init__(self, latent: Sequence[int], width: int) -> None:
        super().__init__(latent, width)
        self.width = features(latent)

    def forward(self, z: Float[Tensor, " b *latent"]) -> Float[Tensor, "b t d"]:
        """Positions side by side."""
        return positions(z)


class Pooled(Tokens):
    """The mean over positions is the only token: [b 1 C]."""

    def __init__(self, latent: Sequence[int], width: int) -> None:
        super().__init__(latent, width)
        self.width = features(latent)

    def forward(self, z: Float[Tensor, " b *latent"]) -> Float[Tensor, "b 1 d"]:
        """Where something is no longer counts, only how much of it there is."""
        return positions(z).mean(1, keepdim=True)


class Project(Tokens):
    """Every position through one learned linear map (a 1×1 convolution) to `width` features: [b H·W width]."""

    def __init__(self, latent: Sequence[int], width: int) -> None:
        super().__init__(latent, width)
        self.width = width
        self.map = nn.Linear(features(latent), width)

    def forward(self, z: Float[Tensor, " b *latent"]) -> Float[Tensor, "b t d"]:
        """Positions side by side, as many features as asked for."""
        return self.map(positions(z))


TOKENS: dict[str, type[Tokens]] = {"flat": Flat, "spatial": Spatial, "pooled": Pooled, "project": Project}
