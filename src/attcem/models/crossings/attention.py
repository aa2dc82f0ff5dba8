"""Attention decides what is kept: a few tokens, each a mean of the places that it looks at."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attcem.layers import GatedCrossAttention, GatedScores, SlotAttention
from attcem.models.crossings.base import Crossing
from attcem.models.units import Shape, convolution, initialise

NARROWER = 4  # hidden numbers of a place's scores are so many times fewer than its channels


class AttentionPooling(nn.Module):
    """t_h = Σ_p α_h(p) · ReLU(BN(W F_p)), α_h = softmax_p( w_h·[ tanh(V LN F_p) ⊙ sigmoid(U LN F_p) ] ).

    The softmax runs over the whole map, or over each region of a grid; positions may enter scores, never values.
    """

    def __init__(self, features: Shape, tokens: int, width: int, grid: int, positions: bool) -> None:
        super().__init__()
        channels, height, long = features
        if height % grid or long % grid:
            raise ValueError(
                f"a map of {height}×{long} has no {grid}×{grid} equal regions: give a grid that divides it"
            )
        self.grid = grid
        self.norm = nn.LayerNorm(channels)
        self.scores = GatedScores(channels, tokens, hidden=max(8, channels // NARROWER))
        nn.init.zeros_(self.scores.w.weight)  # every token begins as the mean over its region
        self.values = convolution(channels, width, kernel=1)
        self.positions = nn.Parameter(0.02 * torch.randn(height * long, channels)) if positions else None
        initialise(self.values)

    def weights(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b regions tokens places"]:
        """How much each token looks at each place of its region."""
        keys = self.norm(x.flatten(2).transpose(1, 2))
        if self.positions is not None:
            keys = keys + self.positions
        scores = self.scores(keys).transpose(1, 2).unflatten(2, x.shape[2:])
        return self.regions(scores).softmax(-1)

    def maps(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b n h w"]:
        """Where each token looks: shares of its attention over the whole map."""
        g, (h, w) = self.grid, x.shape[2:]
        found = x.new_zeros(len(x), g, g, self.scores.w.out_features, g, h // g, g, w // g)
        shares = self.weights(x).unflatten(3, (h // g, w // g)).unflatten(1, (g, g))
        for i in range(g):
            for j in range(g):
                found[:, i, j, :, i, :, j] = shares[:, i, j]
        return found.flatten(6, 7).flatten(4, 5).flatten(1, 3)

    def regions(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b regions c places"]:
        """The places of a map, region by region."""
        g, (h, w) = self.grid, x.shape[2:]
        parts = x.unflatten(2, (g, h // g)).unflatten(4, (g, w // g))
        return parts.permute(0, 2, 4, 1, 3, 5).flatten(4, 5).flatten(1, 2)

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b n d"]:
        """The tokens, region by region."""
        values = self.regions(self.values(x))
        return (self.weights(x) @ values.transpose(2, 3)).flatten(1, 2)


class SlotPooling(nn.Module):
    """Slots that compete for the places of one picture, over ReLU(BN(W F))."""

    def __init__(self, features: Shape, tokens: int, width: int, rounds: int) -> None:
        super().__init__()
        self.values = convolution(features[0], width, kernel=1)
        self.attention = SlotAttention(width, tokens, rounds, fresh=False)
        initialise(self.values)

    def weights(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b 1 tokens places"]:
        """How much each place belongs to each slot."""
        return self.attention(self.values(x).flatten(2).transpose(1, 2))[1].transpose(1, 2).unsqueeze(1)

    def maps(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b n h w"]:
        """Where each slot looks: shares of what belongs to it over the whole map."""
        belongs = self.weights(x).squeeze(1)
        return (belongs / belongs.sum(2, keepdim=True)).unflatten(2, x.shape[2:])

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b n d"]:
        """The slots after the last round."""
        return self.attention(self.values(x).flatten(2).transpose(1, 2))[0]


class PositionQueries(nn.Module):
    """A learned query for every place of a map looks at the tokens: gated cross attention, then the map's channels."""

    def __init__(self, features: Shape, width: int) -> None:
        super().__init__()
        self.size = features[1:]
        heads = next(heads for heads in (4, 2, 1) if width % heads == 0)
        self.queries = nn.Parameter(torch.randn(features[1] * features[2], width))
        self.attention = GatedCrossAttention(width, heads)
        self.out = convolution(width, features[0], kernel=1)
        initialise(self.out)

    def forward(self, tokens: Float[Tensor, "b n d"]) -> Float[Tensor, "b c h w"]:
        """The map for the rest of the backbone."""
        found = self.attention(self.queries.expand(tokens.shape[0], -1, -1), tokens)
        return self.out(found.transpose(1, 2).unflatten(2, self.size))


def attends(encoder: nn.Module) -> bool:
    """Whether attention decides what crosses."""
    return any(hasattr(layer, "maps") for layer in encoder.modules())


def attention_maps(encoder: nn.Module, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b n i j"]:
    """Where each token that crosses looks, for these images."""
    pooling = next(layer for layer in encoder.modules() if hasattr(layer, "maps"))
    found: list[Tensor] = []
    hook = pooling.register_forward_pre_hook(lambda layer, inputs: found.append(layer.maps(*inputs)))
    try:
        encoder(x)
    finally:
        hook.remove()
    return found[0]


@dataclass(frozen=True)
class Tokens(Crossing):
    """A set of tokens, which the cloud's position queries turn back into a map."""

    tokens: int = 8
    width: int = 64

    def widen(self, features: Shape, latent: Shape) -> nn.Module:
        """Position queries that look at the tokens."""
        return PositionQueries(features, latent[1])


@dataclass(frozen=True)
class Attention(Tokens):
    """Gated attention pooling: `tokens` heads of `width` numbers, in every region of a grid × grid, if there is one."""

    equation = "t_h = Σ_p α_h(p) · ReLU( BN( W F_p ) ),   α_h = softmax_p( w_h · [ tanh(V F_p) ⊙ sigmoid(U F_p) ] )"
    grid: int = 1
    positions: bool = False

    def narrow(self, features: Shape) -> nn.Module:
        """Heads that decide which places they keep."""
        return AttentionPooling(features, self.tokens, self.width, self.grid, self.positions)


@dataclass(frozen=True)
class Slot(Tokens):
    """Slot attention over the places of one picture: `tokens` slots of `width` numbers, after some `rounds`."""

    equation = "s ← GRU( s, Σ_p r_p v_p ),   r = softmax_s( k_p · q_s / √d )"
    rounds: int = 2

    def narrow(self, features: Shape) -> nn.Module:
        """Slots that compete for the places."""
        return SlotPooling(features, self.tokens, self.width, self.rounds)
