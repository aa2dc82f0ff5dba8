"""Rows of a batch, taken apart and put together again by several processes, and sums over them: differentiable twice.

Downstream of `together` all processes compute the same, so its gradient is the same everywhere, and each one goes on
with its own rows of it: `together` and `own` are each other's adjoint, and a sum over processes is its own. Layers that
look across samples, or draw for each of them, are made to see the whole batch.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd import Function
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from attcem.train.team import Team


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
    return F.pad(part.permute(order).contiguous(), margins).movedim(list(range(part.ndim)), order)


def memory_order(x: Tensor) -> list[int]:
    """The axes from the one whose steps are longest in memory to the one whose are shortest."""
    return sorted(range(x.ndim), key=x.stride, reverse=True)


class Together(Function):
    """Everyone's rows as one batch, laid out in memory as the parts are."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, total: int) -> Tensor:
        size = dist.get_world_size()
        even = padded(part, 0, -(-total // size) - len(part))
        order = memory_order(even)
        lying = even.permute(order).contiguous()
        pieces = [torch.empty_like(lying) for _ in range(size)]
        dist.all_gather(pieces, lying)
        axis = order.index(0)
        counts = [len(range(total)[rows_of(rank, size, total)]) for rank in range(size)]
        whole = torch.cat([piece.narrow(axis, 0, count) for piece, count in zip(pieces, counts, strict=True)], axis)
        return whole.movedim(list(range(whole.ndim)), order)

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


@contextmanager
def whole_batch(model: nn.Module, team: Team) -> Iterator[None]:
    """While it lasts, every batch norm and dropout of a network acts on the whole batch; modules stay what they are."""
    changed = [
        (layer, forward) for layer in model.modules() for kind, forward in LAYERS.items() if isinstance(layer, kind)
    ]
    for layer, forward in changed:
        layer.forward = partial(forward, layer, team)
    try:
        yield
    finally:
        for layer, _ in changed:
            del layer.forward


def merged(
    team: Team, mean: Float[Tensor, " c"], var: Float[Tensor, " c"], count: int
) -> tuple[Float[Tensor, " c"], Float[Tensor, " c"], Float[Tensor, ""]]:
    """Mean, biased variance and number of all, from those of every process (Chan et al. 1979).

    μ = Σ n_i μ_i / n;  σ² = Σ n_i (σ_i² + (μ_i − μ)²) / n.
    """
    mine = torch.stack([mean, var, torch.full_like(mean, count)])
    places = F.pad(mine.unsqueeze(0), (0, 0, 0, 0, team.rank, team.size - 1 - team.rank))
    means, variances, counts = team.sum(places).unbind(1)
    share = counts / counts.sum(0)
    whole = (share * means).sum(0)
    return whole, (share * (variances + (means - whole).square())).sum(0), counts.detach()[:, 0].sum()


def batch_norm(norm: _BatchNorm, team: Team, x: Float[Tensor, "b c *places"]) -> Float[Tensor, "b c *places"]:
    """γ (x − μ) / √(σ² + ε) + β with the moments of the whole batch, which are also what is remembered."""
    if not norm.training and norm.running_mean is not None:
        return type(norm).forward(norm, x)
    norm._check_input_dim(x)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    var, mean = torch.var_mean(wide, [0, *range(2, x.ndim)], correction=0)
    mean, var, count = merged(team, mean, var, x.numel() // x.shape[1])
    if norm.training and norm.running_mean is not None:  # move what it remembers as `nn.BatchNorm2d` does
        met = norm.num_batches_tracked.add_(1)  # type: ignore[union-attr]
        share = 1 / float(met) if norm.momentum is None else norm.momentum
        unbiased = var.detach() * count / (count - 1)
        for running, now in ((norm.running_mean, mean.detach()), (norm.running_var, unbiased)):
            running.lerp_(now.to(running), share)  # type: ignore[union-attr]
    scale = (var + norm.eps).rsqrt() * (1 if norm.weight is None else norm.weight)
    shift = (0 if norm.bias is None else norm.bias) - mean * scale
    along = (-1, *[1] * (x.ndim - 2))
    return torch.addcmul(shift.view(along), wide, scale.view(along)).to(x.dtype)


def dropout(drop: _DropoutNd, team: Team, x: Float[Tensor, " b *n"]) -> Float[Tensor, " b *n"]:
    """What it makes of one's own rows when it draws for the whole batch."""
    forward = partial(type(drop).forward, drop)
    if not drop.training or team.total == len(x):
        return forward(x)
    return forward(padded(x, team.rows.start, team.total - team.rows.stop))[team.rows]


LAYERS: Mapping[type[nn.Module], Callable[..., Tensor]] = {_BatchNorm: batch_norm, _DropoutNd: dropout}
