"""MobileNetV2 for small images (arXiv:1801.04381): a stem, one unit per inverted residual, last convolution, head."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from attcem.models.units import Shape, convolution, head, initialise

# expansion, channels, repeats, stride of the first: the paper's table, for small images without its second halving
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 1),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def multiple_of_eight(channels: float) -> int:
    """The nearest multiple of 8, at least 8 and never more than a tenth below (the paper's rule)."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded if rounded >= 0.9 * channels else rounded + 8


class InvertedResidual(nn.Module):
    """Expand by 1×1, filter by depthwise 3×3, project by 1×1; a shortcut where the shape stays."""

    def __init__(self, channels_in: int, channels_out: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = channels_in * expansion
        self.layers = nn.Sequential()
        if expansion > 1:
            self.layers.add_module("expand", convolution(channels_in, hidden, kernel=1, activation=nn.ReLU6))
        depthwise = convolution(hidden, hidden, stride=stride, groups=hidden, activation=nn.ReLU6)
        self.layers.add_module("filter", depthwise)
        self.layers.add_module("project", convolution(hidden, channels_out, kernel=1, activation=None))
        self.shortcut = stride == 1 and channels_in == channels_out

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d i j"]:
        """The projected features, plus the input where shapes agree."""
        return x + self.layers(x) if self.shortcut else self.layers(x)


@dataclass(frozen=True)
class MobileNetV2:
    """MobileNetV2 for small images: inverted residuals, cut after unit 5 unless told otherwise."""

    cut: int = 5
    """After the first halving: stem, one thin block, two of 24 channels, the first of 32."""

    def __call__(self, shape: Shape, classes: int, width: float) -> nn.Sequential:
        """Build the network as a Sequential of named units."""
        now = multiple_of_eight(32 * width)
        units = nn.Sequential()
        units.add_module("stem", convolution(shape[0], now, activation=nn.ReLU6))
        for stage, (expansion, channels, repeats, stride) in enumerate(STAGES, 1):
            for block in range(1, repeats + 1):
                channels_out = multiple_of_eight(channels * width)
                unit = InvertedResidual(now, channels_out, stride if block == 1 else 1, expansion)
                units.add_module(f"block{stage}_{block}", unit)
                now = channels_out
        last = multiple_of_eight(1280 * width)
        units.add_module("last", convolution(now, last, kernel=1, activation=nn.ReLU6))
        units.add_module("head", head(last, classes))
        initialise(units)
        return units
