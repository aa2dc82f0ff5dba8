"""Convolutional networks for small images: VGG (arXiv:1409.1556), ResNet (1512.03385), MobileNetV2 (1801.04381)."""

from collections import OrderedDict
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from attcem.models.units import Shape, convolution, finished, scaled

VGG11 = ((64,), (128,), (256, 256), (512, 512), (512, 512))
VGG13 = ((64, 64), (128, 128), (256, 256), (512, 512), (512, 512))
# expansion, channels, repeats, stride of the first: the paper's table, for small images without its second halving
STAGES = ((1, 16, 1, 1), (6, 24, 2, 1), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


@dataclass(frozen=True)
class VGG:
    """Builder of a VGG: `plan` lists the channels of each stage, a pool follows each stage."""

    plan: tuple[tuple[int, ...], ...]
    norm: bool

    @property
    def about(self) -> str:
        layers = f"{sum(map(len, self.plan))} convolutions {'with' if self.norm else 'without'} batch norm"
        return f"VGG of {layers}, cut after unit {self.cut} unless told otherwise."

    @property
    def cut(self) -> int:
        """After the second pool: a quarter of the image's height and width."""
        return sum(len(stage) + 1 for stage in self.plan[:2])

    def __call__(self, shape: Shape, classes: int, width: float) -> nn.Sequential:
        units, channels_in = nn.Sequential(), shape[0]
        for number, stage in enumerate(self.plan, 1):
            for position, channels in enumerate(stage, 1):
                channels_out = scaled(channels, width)
                units.add_module(f"conv{number}_{position}", convolution(channels_in, channels_out, norm=self.norm))
                channels_in = channels_out
            # ceil_mode: 28 pixels survive five halvings
            units.add_module(f"pool{number}", nn.MaxPool2d(2, ceil_mode=True))
        return finished(units, channels_in, classes)


class BasicBlock(nn.Module):
    """Two 3×3 convolutions beside a shortcut; the shortcut is a 1×1 convolution where the shape changes."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.first = convolution(channels_in, channels_out, stride=stride)
        self.second = convolution(channels_out, channels_out, activation=None)
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or channels_in != channels_out:
            self.shortcut = convolution(channels_in, channels_out, kernel=1, stride=stride, activation=None)

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d i j"]:
        return F.relu(self.second(self.first(x)) + self.shortcut(x))


@dataclass(frozen=True)
class ResNet:
    """Builder of a residual network: `channels` and number of `blocks` of each stage."""

    channels: tuple[int, ...]
    blocks: tuple[int, ...]

    @property
    def about(self) -> str:
        layers = 2 + 2 * sum(self.blocks)
        return f"Residual network of {layers} layers, cut after unit {self.cut} unless told otherwise."

    @property
    def cut(self) -> int:
        """After the stem, the first stage and the first halving block: half of the image's height and width."""
        return 1 + self.blocks[0] + 1

    def __call__(self, shape: Shape, classes: int, width: float) -> nn.Sequential:
        now = scaled(self.channels[0], width)
        units = nn.Sequential(OrderedDict(stem=convolution(shape[0], now)))
        for stage, (channels, blocks) in enumerate(zip(self.channels, self.blocks, strict=True), 1):
            for block in range(1, blocks + 1):
                stride = 2 if stage > 1 and block == 1 else 1
                channels_out = scaled(channels, width)
                units.add_module(f"block{stage}_{block}", BasicBlock(now, channels_out, stride))
                now = channels_out
        return finished(units, now, classes)


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
        self.layers.add_module("filter", convolution(hidden, hidden, stride=stride, groups=hidden, activation=nn.ReLU6))
        self.layers.add_module("project", convolution(hidden, channels_out, kernel=1, activation=None))
        self.shortcut = stride == 1 and channels_in == channels_out

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d i j"]:
        return x + self.layers(x) if self.shortcut else self.layers(x)


@dataclass(frozen=True)
class MobileNetV2:
    """MobileNetV2 for small images: inverted residuals, cut after unit 5 unless told otherwise."""

    cut: int = 5  # after the first halving: stem, one thin block, two of 24 channels, the first of 32

    def __call__(self, shape: Shape, classes: int, width: float) -> nn.Sequential:
        now = multiple_of_eight(32 * width)
        units = nn.Sequential(OrderedDict(stem=convolution(shape[0], now, activation=nn.ReLU6)))
        for stage, (expansion, channels, repeats, stride) in enumerate(STAGES, 1):
            for block in range(1, repeats + 1):
                channels_out = multiple_of_eight(channels * width)
                unit = InvertedResidual(now, channels_out, stride if block == 1 else 1, expansion)
                units.add_module(f"block{stage}_{block}", unit)
                now = channels_out
        last = multiple_of_eight(1280 * width)
        units.add_module("last", convolution(now, last, kernel=1, activation=nn.ReLU6))
        return finished(units, last, classes)
