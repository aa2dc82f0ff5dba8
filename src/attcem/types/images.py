"""Pictures, and what becomes of them on the device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from attcem.types.mapped import MEMORY, blocks, pick

Latent = Float[Tensor, "b *latent"]  # clean encoder output ẑ: never leaves the device
Released = Float[Tensor, "b *latent"]  # what leaves the device: every release hook applied, noise included


@dataclass(frozen=True)
class Images:
    """Labelled uint8 images, channels last as they lie in memory or in a file; `pixels` gives floats in [0,1]."""

    x: UInt8[Tensor, "n h w c"]
    y: Int64[Tensor, " n"]
    memory: int = MEMORY  # bytes up to which a selection of them is held in memory; a larger one lies in a file

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: slice | Tensor) -> Images:
        return Images(pick(self.x, index, self.memory), self.y[index], self.memory)

    def divide(self, pieces: Iterable[Tensor]) -> list[Images]:
        """Several selections, which lie in files where all images together exceed the memory."""
        room = self.memory if self.x.nbytes <= self.memory else 0
        return [Images(pick(self.x, piece, room), self.y[piece], self.memory) for piece in pieces]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width of one image, as a network sees it."""
        _, h, w, c = self.x.shape
        return c, h, w

    def to(self, device: torch.device) -> Images:
        """The same images in another place; what is too large for memory stays in its file."""
        return self if self.x.nbytes > self.memory else Images(self.x.to(device), self.y.to(device), self.memory)

    def pixels(self) -> Float[Tensor, "n c h w"]:
        """Images in [0,1], laid out channels_last: four times their bytes, so of a few of them at a time."""
        return self.x.permute(0, 3, 1, 2).float().div_(255)

    def mean(self) -> Float[Tensor, "c h w"]:
        """The average image in [0,1], exact."""
        total = torch.zeros(self.x.shape[1:], dtype=torch.int64, device=self.x.device)
        for rows in blocks(self.x):
            total += self.x[rows].sum(0, dtype=torch.int32)
        return (total.double() / (255 * len(self))).float().permute(2, 0, 1)


@dataclass(frozen=True)
class Batch:
    """One training batch as a defence sees it: images, labels, clean latents.

    A penalty may leave `readings` for the log, numbers or vectors of a fixed length: cheap ones always, others where
    the batch is `watched`.
    """

    x: Float[Tensor, "b c h w"]
    y: Int64[Tensor, " b"]
    z: Latent
    progress: float = 0.0  # share of training done
    watched: bool = False
    readings: dict[str, Tensor] = field(default_factory=dict, repr=False)
