"""The rate bound: how many nats of x can leave the device, at most (docs/theory.md#the-rate-bound).

    I(x;z) ≤ [ H(π) − E_x H(r(x)) ] + Σ_k π_k · ½ log det( I + Σ_k / σ_n² )

for any soft assignment r. Its pieces are here, one function each.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from attcem.maths.moments import Segment, segment_sum


def entropy(p: Float[Tensor, "*n k"]) -> Float[Tensor, "*n"]:
    """H(p) = −Σ p log p in nats; a p of 0 adds nothing and has a finite gradient."""
    return -(p * p.clamp_min(torch.finfo(p.dtype).tiny).log()).sum(-1)


def assignment_information(
    pi: Float[Tensor, "*components"], resp: Float[Tensor, "*n k"], weight: Float[Tensor, "*n"] | None = None
) -> Float[Tensor, ""]:
    """What the assignment tells of the sample: H(π) − E H(r), the mean weighted by `weight`.

    π may have more components than r: where the class is certain, r only says which slot inside it.
    """
    uncertain = entropy(resp)
    if weight is None:
        return entropy(pi.flatten()) - uncertain.mean()
    return entropy(pi.flatten()) - (weight * uncertain).sum() / weight.sum().clamp_min(1e-20)


def diagonal_rate(var: Float[Tensor, "*n d"], sigma: float) -> Float[Tensor, "*n"]:
    """½ Σ_d log(1 + σ²_d/σ_n²): never below the full form (Hadamard)."""
    return 0.5 * torch.log1p(var / noise_variance(sigma)).sum(-1)


def full_rate(cov: Float[Tensor, "*n d d"], sigma: float) -> Float[Tensor, "*n"]:
    """½ log det(I + Σ/σ_n²) of full covariances."""
    return half_log_det(widen(cov) / noise_variance(sigma)).sum(-1).to(cov.dtype)


def gram_rate(rows: Float[Tensor, "n d"], segment: Segment, segments: int, sigma: float) -> Float[Tensor, " c"]:
    """½ log det(I + Σ_c/σ_n²) with Σ_c = Σ_{i∈c} rowᵢ rowᵢᵀ, through the n×n Gram matrix (Sylvester).

    `rows` are deviations from the mean, times √(r/mass). Rows of different segments are made orthogonal; the
    Cholesky factor then falls apart into the segments, and each one's diagonal holds its own determinant.
    """
    wide = widen(rows)
    same = segment.unsqueeze(1) == segment.unsqueeze(0)
    gram = torch.where(same, wide @ wide.T, 0.0) / noise_variance(sigma)
    return segment_sum(half_log_det(gram), segment, segments).to(rows.dtype)


def rate_bound(
    information: Float[Tensor, ""], pi: Float[Tensor, "*components"], rate: Float[Tensor, "*components"]
) -> Float[Tensor, ""]:
    """The bound from its pieces: information + Σ_k π_k · rate_k."""
    return information + (pi * rate).sum()


def noise_variance(sigma: float) -> float:
    """σ_n², refused where it is zero."""
    if not sigma > 0:
        raise ValueError(
            f"the rate bound needs noise, but sigma is {sigma}: without noise a continuous latent can carry any amount "
            "of information, so the bound says nothing; add Noise(sigma=0.1) or more"
        )
    return sigma**2


def half_log_det(matrix: Float[Tensor, "*n d d"]) -> Float[Tensor, "*n d"]:
    """Terms that sum to ½ log det(I + A), A ≥ 0: the log of the Cholesky diagonal.

    NaN where A is so large that rounding swallows the I: what is left would be a number, not the determinant.
    """
    identity = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    factor, failed = torch.linalg.cholesky_ex(matrix + identity)
    terms = factor.diagonal(dim1=-2, dim2=-1).log()
    largest = matrix.diagonal(dim1=-2, dim2=-1).amax(-1)
    exact = (failed == 0) & (largest * torch.finfo(matrix.dtype).eps < 0.1)
    return torch.where(exact.unsqueeze(-1), terms, torch.nan)


def widen(x: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """Double precision: with signal over noise at 1e8, single would lose the I in I + Σ/σ²."""
    return x.double()
