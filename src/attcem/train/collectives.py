"""Rows of a batch, taken apart and put together again by several processes, and sums over them: differentiable twice.

Downstream of `together` all processes compute the same, so its gradient is the same everywhere, and each one goes on
with its own rows of it: `together` and `own` are each other's adjoint, and a sum over processes is its own.
"""

from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.autograd import Function


def rows_of(rank: int, size: int, total: int) -> slice:
    """The rows of one process: parts in order, none longer than another by more than one.

    >>> [rows_of(rank, 3, 7) for rank in range(3)]
    [slice(0, 2, None), slice(2, 4, None), slice(4, 7, None)]
    """
    return slice(total * rank // size, total * (rank + 1) // size)


def padded(part: Float[Tensor, " b *n"], before: int, after: int) -> Float[Tensor, " total *n"]:
    """Rows of zeros before and after, the strides in the same order: noise is drawn as numbers lie in memory."""
    order = memory_order(part)
    margins = [0, 0] * (part.ndim - 1 - order.index(0)) + [before, after]
    return F.pad(part.permute(order).contiguous(), margins).permute(inverse(order))


def memory_order(x: Tensor) -> list[int]:
    """The axes from the one whose steps are longest in memory to the one whose are shortest."""
    return sorted(range(x.ndim), key=x.stride, reverse=True)


def inverse(order: list[int]) -> list[int]:
    return sorted(range(len(order)), key=order.__getitem__)


def gather(part: Float[Tensor, " b *n"], total: int) -> Float[Tensor, " total *n"]:
    """All rows from everyone's own, laid out in memory as the parts are."""
    size = dist.get_world_size()
    even = padded(part, 0, -(-total // size) - len(part))
    order = memory_order(even)
    lying = even.permute(order).contiguous()
    pieces = [torch.empty_like(lying) for _ in range(size)]
    dist.all_gather(pieces, lying)
    axis = order.index(0)
    counts = [len(range(total)[rows_of(rank, size, total)]) for rank in range(size)]
    whole = torch.cat([piece.narrow(axis, 0, count) for piece, count in zip(pieces, counts, strict=True)], axis)
    return whole.permute(inverse(order))


class Together(Function):
    """Everyone's rows as one batch."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, total: int) -> Tensor:
        return gather(part, total)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return Own.apply(gradients[0]), None


class Own(Function):
    """One's own rows of a batch that is the same in every process."""

    @staticmethod
    def forward(ctx: Any, whole: Tensor) -> Tensor:
        """A copy, which a layer may change in place."""
        ctx.total = len(whole)
        return whole[rows_of(dist.get_rank(), dist.get_world_size(), len(whole))].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return Together.apply(gradients[0], ctx.total)


class Sum(Function):
    """Σ over processes; what each makes of it may differ, so gradients add up, too."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        total = value.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return Sum.apply(gradients[0])
