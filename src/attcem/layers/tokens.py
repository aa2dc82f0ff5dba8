"""Latents as sets of tokens [b t d]: whole, position by position, averaged over positions, or projected."""

import math
from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor, nn

WIDEST = 4096
"""Attention has weights in proportion to the square of its tokens' width: beyond this they would dwarf the network."""


def features(latent: Sequence[int]) -> int:
    """Numbers at each position of a map [c h w], in each token of a set [n d], or in a vector [d]."""
    return latent[1] if len(latent) == 2 else latent[0]


class Tokens(nn.Module):
    """Every position is a token: [b H·W C]; tokens stay what they are, and a vector is one token."""

    def __init__(self, latent: Sequence[int], width: int) -> None:
        super().__init__()
        self.width = features(latent)

    def forward(self, z: Float[Tensor, " b *latent"]) -> Float[Tensor, "b t d"]:
        if z.ndim == 4:
            return z.flatten(2).transpose(1, 2)
        return z if z.ndim == 3 else z.unsqueeze(1)


class Flat(Tokens):
    """The whole latent is one token: [b 1 C·H·W]."""

    def __init__(self, latent: Sequence[int], width: int) -> None:
        super().__init__(latent, width)
        self.width = math.prod(latent)

    def forward(self, z: Float[Tensor, " b *latent"]) -> Float[Tensor, "b 1 d"]:
        return z.flatten(1).unsqueeze(1)


class Pooled(Tokens):
    """The mean over positions is the only token: [b 1 C]."""

    def forward(self, z: Float[Tensor, " b *latent"]) -> Float[Tensor, "b 1 d"]:
        return super().forward(z).mean(1, keepdim=True)


class Project(Tokens):
    """Every position through one learned linear map (a 1×1 convolution) to `width` features: [b H·W width]."""

    def __init__(self, latent: Sequence[int], width: int) -> None:
        super().__init__(latent, width)
        self.map, self.width = nn.Linear(self.width, width), width

    def forward(self, z: Float[Tensor, " b *latent"]) -> Float[Tensor, "b t d"]:
        return self.map(super().forward(z))


TOKENS: dict[str, type[Tokens]] = {"flat": Flat, "spatial": Tokens, "pooled": Pooled, "project": Project}
