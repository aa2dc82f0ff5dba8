"""Residual networks for small images (arXiv:1512.03385): a stem, one unit per basic block, one head."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from attcem.models.units import Shape, convolution, head, initialise, scaled


class BasicBlock(nn.Module):
    """Two 3×3 convolutions beside a shortcut; the shortcut is a 1×1 convolution where the shape changes."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.first = convolution(channels_in, channels_out, stride=stride)
        self.second = convolution(channels_out, channels_out, activation=None)
        same = stride == 1 and channels_in == channels_out
        self.shortcut = (
            nn.Identity() if same else convolution(channels_in, channels_out, kernel=1, stride=stride, activation=None)
        )

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d i j"]:
        """The residual sum, rectified."""
        return F.relu(self.second(self.first(x)) + self.shortcut(x))


@dataclass(frozen=True)
class ResNet:
    """Builder of a residual network: `channels` and number of `blocks` of each stage."""

    channels: tuple[int, ...]
    blocks: tuple[int, ...]

    @property
    def about(self) -> str:
        """One line for `attcem list`."""
        layers = 2 + 2 * sum(self.blocks)
        return f"Residual network of {layers} layers, cut after unit {self.cut} unless told otherwise."

    @property
    def cut(self) -> int:
        """After the stem, the first stage and the first halving block: half of the image's height and width."""
        return 1 + self.blocks[0] + 1

    def __call__(self, shape: Shape, classes: int, width: float) -> nn.Sequential:
        """Build the network as a Sequential of named units."""
        now = scaled(self.channels[0], width)
        units = nn.Sequential()
        units.add_module("stem", convolution(shape[0], now))
        for stage, (channels, blocks) in enumerate(zip(self.channels, self.blocks, strict=True), 1):
            for block in range(1, blocks + 1):
                stride = 2 if stage > 1 and block == 1 else 1
                channels_out = scaled(channels, width)
                units.add_module(f"block{stage}_{block}", BasicBlock(now, channels_out, stride))
                now = channels_out
        units.add_module("head", head(now, classes))
        initialise(units)
        return units
