"""Fisher information about the picture in what is released, as a penalty."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from attcem.defences.base import INPUT_GRADIENT, NOISE, Defence, nothing
from attcem.maths import gaussian_like
from attcem.types import Batch, Latent


def fisher_trace(x: Float[Tensor, "b c h w"], z: Latent, sigma: float, draws: int) -> Float[Tensor, " b"]:
    """tr(JᵀJ) / σ² of each sample, J = ∂ẑ/∂x, by Hutchinson: the mean of ‖Jᵀv‖² / σ² over v ~ N(0, I)."""
    total = x.new_zeros(len(x))
    for _ in range(draws):
        (pulled,) = torch.autograd.grad(z, x, gaussian_like(z), create_graph=True)
        total = total + pulled.flatten(1).square().sum(1)
    return total / (draws * sigma**2)


class Fisher(Defence):
    """Penalises Fisher information: how sharply the released latent responds to each pixel (dFIL).

    dFIL = tr(JᵀJ) / (σ² d) for d pixels and J = ∂ẑ/∂x; no unbiased attack has a mean squared error below 1/dFIL (Maeng
    et al. 2023).  L = ½ log(1 + dFIL), averaged over the batch: ½ nat less is the floor raised by e. It is
    differentiated through the encoder, twice: a step takes about two and a half times as long.

    Args:
        lam: weight of the penalty's gradient in the encoder.
        draws: random directions in the latent for each estimate of the trace.
        warmup: epochs before it starts.
    """

    equation = "L = ½ log( 1 + tr(JᵀJ) / (σ² d) ),   J = ∂ẑ/∂x"
    needs = frozenset({NOISE, INPUT_GRADIENT})

    def __init__(self, lam: float = 0.1, draws: int = 1, warmup: int = 0) -> None:
        super().__init__()
        if draws < 1:
            raise ValueError(f"fisher draws={draws} estimates nothing: give at least 1")
        self.lam, self.draws, self.warmup = lam, draws, warmup

    def setup(self, *, latent: Sequence[int], classes: int, sigma: float) -> None:
        self.sigma_n = sigma

    def penalty(self, batch: Batch) -> Float[Tensor, ""]:
        if not (batch.x.requires_grad and batch.z.grad_fn is not None):  # the latent does not hang on the picture
            return nothing(batch.z)
        leak = fisher_trace(batch.x, batch.z, self.sigma_n, self.draws) / batch.x[0].numel()
        if batch.watched:
            batch.readings["dfil"] = leak.detach().mean()
        return 0.5 * leak.log1p().mean()
