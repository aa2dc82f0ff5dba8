"""Frequencies of the image that the device removes before its encoder sees them."""

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from attcem.defences.base import Defence
from attcem.maths import block_filter, zigzag


class DCT(Defence):
    """Removes the lowest or highest frequencies of every block of the image, on the device, before the encoder.

    x → DᵀM D x on each block × block patch of each channel, D the orthonormal cosine transform, M zero for `count`
    frequencies in JPEG's zigzag order. Two images that differ in nothing else are sent alike. The removal of visual
    information that InfoDecom begins with (Deng et al., AAAI 2026; there block 8 and count 10, low), without the rest.

    Args:
        count: how many frequencies of a block are removed.
        remove: from which end: low begins with the mean of the block, high with its finest detail.
        block: side of the blocks in pixels; it must divide the image's sides.
    """

    equation = "x ← Dᵀ M D x"
    strength = "count"

    def __init__(self, count: int = 8, remove: str = "low", block: int = 4) -> None:
        super().__init__()
        if isinstance(block, bool) or not isinstance(block, int) or not 2 <= block <= 64:
            raise ValueError(f"dct block={block!r} must be a whole number from 2 to 64: JPEG's is 8")
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < block**2:
            raise ValueError(f"dct count={count!r} must lie between 0 and {block**2 - 1}: a block has {block**2}")
        if remove not in ("low", "high"):
            raise ValueError(f"dct remove={remove!r} is no end of the frequencies: give low or high")
        self.count, self.remove, self.block = count, remove, block
        order = zigzag(block) if remove == "low" else zigzag(block)[::-1]
        self.projection: Tensor
        self.register_buffer("projection", block_filter(block, order[:count]).float(), persistent=False)
        self.hook: RemovableHandle | None = None

    def attach(self, encoder: nn.Module, borrow: Callable[[str], None] | None = None) -> None:
        """Stand before the encoder's first layer, so that whatever begins with it is filtered, too."""
        if self.hook is not None:
            self.hook.remove()
        first = encoder[0] if isinstance(encoder, nn.Sequential) else encoder
        self.hook = first.register_forward_pre_hook(self.before)

    def before(self, _: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self.filtered(inputs[0]), *inputs[1:])

    def filtered(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        """The images without the removed frequencies."""
        height, width = x.shape[2:]
        if height % self.block or width % self.block:
            fitting = [str(side) for side in range(2, 65) if height % side == 0 and width % side == 0]
            advice = f"give {' or '.join(fitting)}" if fitting else "crop or resize them"
            raise ValueError(f"dct block={self.block} does not divide images of {height}×{width}: {advice}")
        blocks = F.pixel_unshuffle(x, self.block).unflatten(1, (x.shape[1], self.block**2))
        kept = (self.projection.to(x) @ blocks.flatten(3)).unflatten(3, blocks.shape[3:])
        return F.pixel_shuffle(kept.flatten(1, 2), self.block)
