"""Batches of uint8 images, which lie where the network is if they fit there; a batch is augmented in one gather."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor

from attcem.types import Images


@dataclass(frozen=True)
class Augment:
    """Random shift of up to `crop` pixels (mirrored at the border) and horizontal flip."""

    crop: int = 4
    flip: bool = True


AT_ONCE = 256 * 64**2  # pixels of a batch for evaluation, at most: those of 20 images of 224×224
NO_AUGMENT = Augment(crop=0, flip=False)


def mirror(index: Int64[Tensor, "b n"], size: int) -> Int64[Tensor, "b n"]:
    """Fold indices that fell off either end back inside, as reflection padding does."""
    index = index.abs()
    return torch.minimum(index, 2 * (size - 1) - index)


def shift_flip(
    x: UInt8[Tensor, "n h w c"],
    pick: Int64[Tensor, " b"],
    down: Int64[Tensor, " b"],
    right: Int64[Tensor, " b"],
    flip: Bool[Tensor, " b"],
) -> UInt8[Tensor, "b h w c"]:
    """Pick images, shift and flip each: one gather over pixels, x'[b, i, j] = x[pick_b, i + down_b, ±j + right_b]."""
    n, h, w, c = x.shape
    rows = mirror(torch.arange(h, device=x.device) + down[:, None], h)
    across = torch.arange(w, device=x.device)
    columns = mirror(torch.where(flip[:, None], across.flip(0), across) + right[:, None], w)
    pixels = ((pick[:, None] * h + rows) * w)[:, :, None] + columns[:, None, :]
    return x.reshape(n * h * w, c).index_select(0, pixels.flatten()).view(len(pick), h, w, c)


class Loader:
    """Serves epochs of shuffled, augmented batches; the order depends only on the seed and the epoch's number."""

    def __init__(
        self,
        images: Images,
        batch: int,
        *,
        device: torch.device | str = "cpu",
        augment: Augment = NO_AUGMENT,
        seed: int = 0,
    ) -> None:
        if batch < 1:
            raise ValueError(f"batch must be at least 1, not {batch}")
        if augment.crop >= min(images.shape[1:]):
            raise ValueError(f"crop={augment.crop} must be smaller than the image, {images.shape[1]}×{images.shape[2]}")
        images = images.to(torch.device(device))
        self.x, self.y, self.device = images.x.contiguous(), images.y, device
        self.batch, self.augment, self.seed = batch, augment, seed

    def __len__(self) -> int:
        """Batches per epoch; the last, short one is left out unless it is the only one."""
        return max(1, len(self.y) // self.batch)

    def epoch(self, number: int) -> Iterator[tuple[Float[Tensor, "b c h w"], Int64[Tensor, " b"]]]:
        """Yield the batches of one epoch: images in [0,1] laid out channels_last, and labels."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + number)
        order = torch.randperm(len(self.y), generator=generator)
        for start in range(0, len(self) * self.batch, self.batch):
            pick = order[start : start + self.batch]
            shift = torch.randint(-self.augment.crop, self.augment.crop + 1, (2, len(pick)), generator=generator)
            flip = torch.rand(len(pick), generator=generator) < 0.5 * self.augment.flip
            pick, (down, right), flip = pick.to(self.x.device), shift.to(self.x.device), flip.to(self.x.device)
            chosen = self.x[pick] if self.augment == NO_AUGMENT else shift_flip(self.x, pick, down, right, flip)
            yield chosen.to(self.device).permute(0, 3, 1, 2).float().div_(255), self.y[pick].to(self.device)


def in_order(
    images: Images, batch: int = 256, device: torch.device | str = "cpu"
) -> Iterator[tuple[Float[Tensor, "b c h w"], Int64[Tensor, " b"]]]:
    """Every image once, in order, as it is: for evaluation. Batches of large images are smaller."""
    _, height, width = images.shape
    batch = min(batch, max(1, AT_ONCE // (height * width)))
    for start in range(0, len(images), batch):
        part = images[start : start + batch]
        yield part.pixels().to(device), part.y.to(device)
