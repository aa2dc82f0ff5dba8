"""What the backbones are built from: a builder's contract, normalisation, convolution units, the head."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from attcem.models.graphs import undisturbed
from attcem.types.mapped import blocks

Shape = tuple[int, ...]  # channels, height, width of one image
Backbone = Callable[[Shape, int, float], nn.Sequential]
"""(shape, classes, width) → a Sequential of named units, of which a cut is a slice.

Every channel count is multiplied by `width`; an attribute `cut` says how many units stay on the device by default.
"""
SMALLEST_STD = 1 / 255  # one grey level: a constant channel is centred, not blown up


class Normalise(nn.Module):
    """(x − mean) / std per channel, first in the encoder, so that images are in [0,1] everywhere else.

    Both are buffers, so they travel with the weights.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32).view(-1, 1, 1))

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        return (x - self.mean) / self.std

    def extra_repr(self) -> str:
        shown = {name: [round(v, 4) for v in buffer.flatten().tolist()] for name, buffer in self.named_buffers()}
        return ", ".join(f"{name}={values}" for name, values in shown.items())


def channel_statistics(x: UInt8[Tensor, "n h w c"]) -> tuple[list[float], list[float]]:
    """Mean and standard deviation per channel of [0,1] pixels, exact: a histogram never overflows or rounds."""
    if x.numel() == 0:
        raise ValueError("data.private holds no images: load some, or give shape= and classes= instead of data=")
    levels = torch.arange(256, dtype=torch.float64) / 255
    means, stds = [], []
    for channel in x.unbind(-1):
        counts = [torch.bincount(channel[rows].flatten(), minlength=256) for rows in blocks(x)]
        share = torch.stack(counts).sum(0).cpu().double() / channel.numel()
        mean = float(share @ levels)
        means.append(mean)
        stds.append(max(float(share @ (levels - mean) ** 2) ** 0.5, SMALLEST_STD))
    return means, stds


def scaled(channels: int, width: float) -> int:
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
    unit, padding = nn.Sequential(), (kernel - 1) // 2
    unit.add_module("conv", nn.Conv2d(channels_in, channels_out, kernel, stride, padding, groups=groups, bias=not norm))
    if norm:
        unit.add_module("norm", nn.BatchNorm2d(channels_out))
    if activation is not None:
        unit.add_module("act", activation(inplace=True))
    return unit


def initialise(network: nn.Module) -> None:
    """He initialisation by fan-out for convolutions (arXiv:1502.01852); torch begins batch norm with 1 and 0."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def finished(units: nn.Sequential, channels: int, classes: int) -> nn.Sequential:
    """Initialised, with a head: the average over all positions, then one linear layer, so that any image size fits."""
    units.add_module("head", nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)))
    initialise(units)
    return units


@torch.no_grad()
def shape_after(network: nn.Module, shape: Shape) -> Shape:
    """Shape of one output for one input of that shape, found by running it; the mode and the statistics stay."""
    with undisturbed(network):
        return tuple(network.eval()(torch.zeros(1, *shape)).shape[1:])
