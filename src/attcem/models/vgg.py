"""VGG for small images (arXiv:1409.1556): one unit per convolution, one per pool, one head."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from attcem.models.units import Shape, convolution, head, initialise, scaled

VGG11 = ((64,), (128,), (256, 256), (512, 512), (512, 512))
VGG13 = ((64, 64), (128, 128), (256, 256), (512, 512), (512, 512))


@dataclass(frozen=True)
class VGG:
    """Builder of a VGG: `plan` lists the channels of each stage, a pool follows each stage."""

    plan: tuple[tuple[int, ...], ...]
    norm: bool

    @property
    def about(self) -> str:
        """One line for `attcem list`."""
        convolutions = sum(map(len, self.plan))
        norm = "with batch norm" if self.norm else "without batch norm"
        return f"VGG of {convolutions} convolutions {norm}, cut after unit {self.cut} unless told otherwise."

    @property
    def cut(self) -> int:
        """After the second pool: a quarter of the image's height and width."""
        return sum(len(stage) + 1 for stage in self.plan[:2])

    def __call__(self, shape: Shape, classes: int, width: float) -> nn.Sequential:
        """Build the network as a Sequential of named units."""
        units, channels_in = nn.Sequential(), shape[0]
        for number, stage in enumerate(self.plan, 1):
            for position, channels in enumerate(stage, 1):
                channels_out = scaled(channels, width)
                units.add_module(f"conv{number}_{position}", convolution(channels_in, channels_out, norm=self.norm))
                channels_in = channels_out
            # ceil_mode: 28 pixels survive five halvings
            units.add_module(f"pool{number}", nn.MaxPool2d(2, ceil_mode=True))
        units.add_module("head", head(channels_in, classes))
        initialise(units)
        return units
