"""A small vision transformer (arXiv:2010.11929): a unit that makes tokens of patches, one per block, one head."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attcem.models.units import Shape, initialise, scaled

PATCH, SIDE = 4, 56  # patches have 4 pixels a side for every 56 of the image: 8×8 of them in 32 pixels, 14×14 in 224

Tokens = Float[Tensor, "b n d"]


class Patches(nn.Module):
    """A token for each patch after one for the class, each with its learned place.

    They are normalised at once: small numbers would hardly be told apart behind a sigmoid and noise at the cut.
    """

    def __init__(self, shape: Shape, features: int) -> None:
        super().__init__()
        channels, *sides = shape
        patch = PATCH * max(1, round(max(sides) / SIDE))
        missing = [-side % patch for side in sides]
        padding = [(pixels + 1) // 2 for pixels in missing]
        self.embed = nn.Conv2d(channels, features, patch, patch, (padding[0], padding[1]))
        count = (sides[0] + missing[0]) // patch * ((sides[1] + missing[1]) // patch)
        self.first = nn.Parameter(torch.zeros(1, 1, features))
        self.places = nn.Parameter(nn.init.trunc_normal_(torch.empty(1, 1 + count, features), std=0.02))
        self.norm = nn.LayerNorm(features)

    def forward(self, x: Float[Tensor, "b c h w"]) -> Tokens:
        patches = self.embed(x).flatten(2).transpose(1, 2)
        return self.norm(torch.cat([self.first.expand(x.shape[0], -1, -1), patches], 1) + self.places)


class Attention(nn.Module):
    """Every token asks all of them, in each head by itself: softmax(q kᵀ/√d) v."""

    def __init__(self, features: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ask, self.answer = nn.Linear(features, 3 * features), nn.Linear(features, features)

    def forward(self, x: Tokens) -> Tokens:
        q, k, v = self.ask(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind()
        # written out, as torch's own cannot be differentiated twice, which the Fisher penalty asks for
        weights = (q @ k.transpose(2, 3) / q.shape[3] ** 0.5).softmax(3)
        return self.answer((weights @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention, then two layers for each token, both beside a shortcut and after a norm."""

    def __init__(self, features: int, heads: int) -> None:
        super().__init__()
        self.attend = nn.Sequential(nn.LayerNorm(features), Attention(features, heads))
        self.think = nn.Sequential(
            nn.LayerNorm(features), nn.Linear(features, 4 * features), nn.GELU(), nn.Linear(4 * features, features)
        )

    def forward(self, x: Tokens) -> Tokens:
        x = x + self.attend(x)
        return x + self.think(x)


class FirstToken(nn.Module):
    """The token that was added for the class."""

    def forward(self, x: Tokens) -> Float[Tensor, "b d"]:
        return x[:, 0]


@dataclass(frozen=True)
class VisionTransformer:
    """Small vision transformer: tokens of patches cross, after unit 3 (two blocks) unless told otherwise."""

    head_features: int = 32
    heads: int = 4
    blocks: int = 6
    cut: int = 3

    def __call__(self, shape: Shape, classes: int, width: float) -> nn.Sequential:
        features = self.heads * scaled(self.head_features, width)
        units = nn.Sequential()
        units.add_module("patches", Patches(shape, features))
        for block in range(1, self.blocks + 1):
            units.add_module(f"block{block}", Block(features, self.heads))
        units.add_module("head", nn.Sequential(nn.LayerNorm(features), FirstToken(), nn.Linear(features, classes)))
        initialise(units)
        return units
