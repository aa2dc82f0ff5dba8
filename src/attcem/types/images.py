"""Pictures, and what becomes of them on the device."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

Latent = Float[Tensor, "b *latent"]
"""Clean encoder output ẑ: never leaves the device."""

Released = Float[Tensor, "b *latent"]
"""What leaves the device: every release hook applied, noise included."""


@dataclass(frozen=True)
class Images:
    """Labelled uint8 images, channels last as they lie in memory; `pixels` gives floats in [0,1]."""

    x: UInt8[Tensor, "n h w c"]
    y: Int64[Tensor, " n"]

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: slice | Tensor) -> Images:
        return Images(self.x[index], self.y[index])

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width of one image, as a network sees it."""
        _, h, w, c = self.x.shape
        return c, h, w

    def to(self, device: torch.device) -> Images:
        """The same images in another place."""
        return Images(self.x.to(device), self.y.to(device))

    def pixels(self) -> Float[Tensor, "n c h w"]:
        """Images in [0,1], laid out channels_last."""
        return self.x.permute(0, 3, 1, 2).float().div_(255)


@dataclass(frozen=True)
class Batch:
    """One training batch as a defence sees it: images, labels, clean latents.

    A penalty may leave `readings` for the log, numbers or vectors of a fixed length: cheap ones always, others where
    the batch is `watched`.
    """

    x: Float[Tensor, "b c h w"]
    y: Int64[Tensor, " b"]
    z: Latent
    progress: float = 0.0
    """Share of training done."""
    watched: bool = False
    readings: dict[str, Tensor] = field(default_factory=dict, repr=False)
