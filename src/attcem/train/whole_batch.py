"""Layers that look across samples, or draw for each of them, made to see the whole batch that processes share."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from attcem.train.collectives import padded
from attcem.train.team import Team


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
    if norm.training and norm.running_mean is not None:
        remember(norm, mean.detach(), var.detach() * count / (count - 1))
    scale = (var + norm.eps).rsqrt() * (1 if norm.weight is None else norm.weight)
    shift = (0 if norm.bias is None else norm.bias) - mean * scale
    along = (-1, *[1] * (x.ndim - 2))
    return torch.addcmul(shift.view(along), wide, scale.view(along)).to(x.dtype)


@torch.no_grad()
def remember(norm: _BatchNorm, mean: Float[Tensor, " c"], var: Float[Tensor, " c"]) -> None:
    """Move the running statistics as `nn.BatchNorm2d` does."""
    met = norm.num_batches_tracked.add_(1)  # type: ignore[union-attr]
    share = 1 / float(met) if norm.momentum is None else norm.momentum
    for running, now in ((norm.running_mean, mean), (norm.running_var, var)):
        running.lerp_(now.to(running), share)  # type: ignore[union-attr]


def dropout(drop: _DropoutNd, team: Team, x: Float[Tensor, " b *n"]) -> Float[Tensor, " b *n"]:
    """What it makes of one's own rows when it draws for the whole batch."""
    forward = partial(type(drop).forward, drop)
    if not drop.training or team.total == len(x):
        return forward(x)
    return forward(padded(x, team.rows.start, team.total - team.rows.stop))[team.rows]


LAYERS: Mapping[type[nn.Module], Callable[..., Tensor]] = {_BatchNorm: batch_norm, _DropoutNd: dropout}
