"""Channels of the device's half that are silenced for good, half-way through training."""

import math
from collections.abc import Callable, Iterable
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from attcem.defences.base import Defence
from attcem.types import Batch


def channel_layers(encoder: nn.Module) -> list[tuple[str, nn.Conv2d, nn.Module]]:
    """Every inner convolution with its name and where its channels are complete: after its batch norm, if it has one.

    The last convolution makes the latent and is left alone.
    """
    layers = [(name, layer) for name, layer in encoder.named_modules() if isinstance(layer, nn.Conv2d | nn.BatchNorm2d)]
    found = []
    for (name, layer), (_, following) in pairwise([*layers, ("", encoder)]):
        if isinstance(layer, nn.Conv2d):
            normed = isinstance(following, nn.BatchNorm2d) and following.num_features == layer.out_channels
            found.append((name, layer, following if normed else layer))
    return found[:-1]


def importance(layer: nn.Conv2d, complete: nn.Module) -> Float[Tensor, " channels"]:
    """|γ| · ‖w‖₁ of each output channel, γ the batch norm's gain, or 1 without one."""
    size = layer.weight.detach().abs().flatten(1).sum(1)
    return size if complete is layer else size * complete.weight.detach().abs()  # type: ignore[operator]


class Pruning(Defence):
    """Silences the least important channels of the encoder after some epochs: fewer ways out for the picture.

    Structured, by the size of each filter, as PATROL prunes (Ding et al. 2024) but without its adversary: chain it with
    `arl` for that. The other channels, and the optimiser's state of them, go on as they were. A silenced channel is
    exactly 0 ever after, in training, attack and deployment; the latent keeps its shape.

    Args:
        keep: share of every inner layer's channels that stays.
        warmup: epochs before the rest is silenced.
    """

    equation = "w_j ← 0,   |γ_j| · ‖w_j‖₁ < t"
    strength = "keep"

    def __init__(self, keep: float = 0.5, warmup: int = 1) -> None:
        super().__init__()
        if not 0 < keep <= 1 or warmup < 1:
            raise ValueError(f"pruning keep={keep}, warmup={warmup}: give a share in (0, 1], and at least one epoch")
        self.keep, self.warmup = keep, warmup
        self.layers: list[tuple[nn.Conv2d, nn.Module]] = []
        self.hooks: list[RemovableHandle] = []

    def attach(self, encoder: nn.Module, borrow: Callable[[str], None] | None = None) -> None:
        for hook in self.hooks:
            hook.remove()
        self.layers, self.hooks = [(layer, complete) for _, layer, complete in channel_layers(encoder)], []
        if not self.layers:
            raise ValueError("pruning finds no inner convolution in the device's half: cut the network deeper")
        for number, (layer, complete) in enumerate(self.layers):
            self.register_buffer(f"mask_{number}", torch.ones_like(layer.weight[:, 0, 0, 0]))
            self.hooks.append(complete.register_forward_hook(self.silence(number)))

    def silence(self, number: int) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], Tensor]:
        return lambda _layer, _inputs, output: output * getattr(self, f"mask_{number}")[:, None, None].to(output)

    def review(self, batches: Iterable[Batch]) -> None:
        """At the end of its warm-up: silence what is least important; later only clear what momentum has moved."""
        for number, (layer, complete) in enumerate(self.layers):
            mask = getattr(self, f"mask_{number}")
            if bool(mask.all()):
                kept = importance(layer, complete).topk(max(1, math.ceil(self.keep * len(mask)))).indices
                mask.zero_()[kept] = 1
            for parameter in {*layer.parameters(), *complete.parameters()}:
                parameter.data[mask == 0] = 0

    @property
    def silenced(self) -> int:
        return sum(int((buffer == 0).sum()) for buffer in self.buffers())
