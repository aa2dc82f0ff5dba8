"""What the backbones are built from: a builder's contract, convolution units, the head, initialisation."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

Shape = tuple[int, ...]
"""Channels, height, width of one image."""

Backbone = Callable[[Shape, int, float], nn.Sequential]
"""(shape, classes, width) → a Sequential of named units, of which a cut is a slice.

Every channel count is multiplied by `width`; an attribute `cut` says how many units stay on the device by default.
"""


def scaled(channels: int, width: float) -> int:
    """A channel count times the width, at least 1."""
    return max(1, round(channels * width))


def convolution(
    channels_in: int,
    channels_out: int,
    *,
    kernel: int = 3,
    stride: int = 1,
    groups: int = 1,
    norm: bool = True,
    activation: type[nn.Module] | None = nn.ReLU,
) -> nn.Sequential:
    """Convolution (+ batch norm) (+ activation) as one unit; padded so that stride 1 keeps the size."""
    unit = nn.Sequential()
    padding = (kernel - 1) // 2
    unit.add_module(
        "conv",
        nn.Conv2d(channels_in, channels_out, kernel, stride, padding, groups=groups, bias=not norm),
    )
    if norm:
        unit.add_module("norm", nn.BatchNorm2d(channels_out))
    if activation is not None:
        unit.add_module("act", activation(inplace=True))
    return unit


def head(channels_in: int, classes: int) -> nn.Sequential:
    """Average over all positions, then one linear layer: any image size fits."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels_in, classes))


def initialise(network: nn.Module) -> None:
    """He initialisation by fan-out for convolutions, 1 and 0 for batch norm (arXiv:1502.01852)."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.ones_(module.weight)
            nn.init.zeros_(module.bias)


@torch.no_grad()
def shape_after(network: nn.Module, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of one output for one input of that shape, found by running it; the mode and the statistics stay."""
    modes = {module: module.training for module in network.modules()}
    network.eval()
    try:
        return tuple(network(torch.zeros(1, *shape)).shape[1:])
    finally:
        for module, mode in modes.items():
            module.training = mode
