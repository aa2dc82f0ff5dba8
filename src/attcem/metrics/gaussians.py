"""Gaussians that are fitted to some samples and judged on others, so that no figure flatters itself."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from attcem.maths import Moments, diagonal_rate, moments, widen
from attcem.maths.rate import noise_variance

FEWEST = 8  # samples below which nothing can be fitted and judged apart
PRIOR = 4.0  # a group's variances count this many samples of the average group: few samples look narrower than they are
LEADING = 128  # features, the widest ones, in which every group has a full covariance of its own
STRENGTHS = (10.0, 30.0, 100.0, 300.0, 1000.0)
"""Of how many samples of the average group that covariance may count; the best of them is chosen."""
AT_ONCE = 1024


@dataclass(frozen=True)
class Parts:
    """Which samples find the axes (half), which the spread along them (a quarter), and which judge (a quarter)."""

    axes: Int64[Tensor, " a"]
    spread: Int64[Tensor, " s"]
    judge: Int64[Tensor, " j"]

    @property
    def fit(self) -> Int64[Tensor, " f"]:
        return torch.cat([self.axes, self.spread])


def parts(n: int, seed: int) -> Parts:
    if n < FEWEST:
        raise ValueError(f"bounds need at least {FEWEST} images to fit and judge on, and got {n}: give more")
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    return Parts(order[: n // 2], order[n // 2 : 3 * n // 4], order[3 * n // 4 :])


@dataclass(frozen=True)
class Mixture:
    """Gaussians with weights π_k, means μ_k, and variances along axes: own ones for the leading features, if any."""

    log_pi: Float[Tensor, " k"]
    mu: Float[Tensor, "k d"]
    var: Float[Tensor, "k d"]
    turn: Float[Tensor, "k q q"]

    def turned(self, apart: Float[Tensor, "n d"], k: int) -> Float[Tensor, "n d"]:
        leading = self.turn.shape[1]
        return torch.cat([apart[:, :leading] @ self.turn[k], apart[:, leading:]], 1) if leading else apart

    def surprise(self, rows: Float[Tensor, "n d"], sigma: float) -> Float[Tensor, "n k"]:
        """KL_k − log π_k, KL_k of N(ẑ, σ²I) from N(μ_k, Σ_k + σ²I).

        KL_k = ½[ log det(I + Σ_k/σ²) + tr((Σ_k+σ²I)⁻¹((ẑ−μ_k)(ẑ−μ_k)ᵀ + σ²I)) − D ].
        """
        noise = noise_variance(sigma)
        precision = 1 / (self.var + noise)
        constant = diagonal_rate(self.var, sigma) + 0.5 * (noise * precision - 1).sum(1) - self.log_pi
        found = []
        for some in map(widen, rows.split(AT_ONCE)):
            apart = [self.turned(some - self.mu[k], k).square() @ precision[k] for k in range(len(precision))]
            found.append(constant + 0.5 * torch.stack(apart, 1))
        return torch.cat(found)

    def nats(self, rows: Float[Tensor, "n d"], sigma: float) -> Float[Tensor, " n"]:
        """min_r Σ_k r_k [ log r_k/π_k + KL_k ] = −log Σ_k π_k exp(−KL_k), of each sample."""
        return -torch.logsumexp(-self.surprise(rows, sigma), 1)


def fit(rows: Float[Tensor, "n d"], group: Int64[Tensor, " n"], groups: int) -> Mixture:
    """One Gaussian per group, every feature by itself.

    A group without samples is as wide as all of them, and none is impossible: weights are (m_k + ½)/(n + K/2).
    """
    found, whole = moments(rows, group, groups), moments(rows, torch.zeros_like(group), 1)
    mass, squares = widen(found.mass), widen(found.mass * found.var[:, 0])
    var = expected(squares, within_groups(found, whole), mass, PRIOR)
    return Mixture(
        log_pi=((mass[:, 0] + 0.5) / (len(rows) + groups / 2)).log(),
        mu=widen(torch.where(mass > 0, found.mu[:, 0], whole.mu[:, 0])),
        var=torch.where(mass > 0, var, widen(whole.var[:, 0])),
        turn=widen(rows.new_zeros(groups, 0, 0)),
    )


def fit_full(rows: Float[Tensor, "n d"], group: Int64[Tensor, " n"], groups: int, axes: int, sigma: float) -> Mixture:
    """As `fit`, with a full covariance for each group's leading features, shrunk towards the average group's variances.

    The first `axes` samples found the axes that the rows are given along, widest first; variances are those of the
    others, and the strength of shrinkage is the one under which the first describe the others best.
    """
    every, spread = fit(rows, group, groups), fit(rows[axes:], group[axes:], groups)
    leading, others = rows[:, :LEADING], group[axes:]
    average = within_groups(moments(leading[axes:], others, groups), moments(leading[axes:], 0 * others, 1))

    def described(strength: float) -> float:
        found = fit_own_axes(leading[:axes], group[:axes], groups, average, strength)
        return found.nats(leading[axes:], sigma).mean().item()

    own = fit_own_axes(leading, group, groups, average, min(STRENGTHS, key=described))
    return Mixture(own.log_pi, every.mu, torch.cat([own.var, spread.var[:, LEADING:]], 1), own.turn)


def fit_own_axes(
    rows: Float[Tensor, "n d"], group: Int64[Tensor, " n"], groups: int, average: Float[Tensor, " d"], strength: float
) -> Mixture:
    """One Gaussian per group along the group's own principal axes; one without samples has no axes of its own."""
    plain, covariances = fit(rows, group, groups), []
    for k in range(groups):
        apart = widen(rows[group == k]) - plain.mu[k]
        target = average if len(apart) else plain.var[k]
        covariances.append(expected(apart.T @ apart, target.diag(), apart.new_tensor(len(apart)), strength))
    var, turn = torch.linalg.eigh(torch.stack(covariances))
    return Mixture(plain.log_pi, plain.mu, var.clamp_min(0), turn)


def expected(
    squares: Float[Tensor, "*s"], target: Float[Tensor, "*t"], mass: Float[Tensor, "*m"], strength: float
) -> Float[Tensor, "*s"]:
    """Squared deviation that a new sample is expected to have, not the one that these samples had from their mean."""
    return (squares + strength * target) / ((mass - 1).clamp_min(0) + strength) * (1 + 1 / mass.clamp_min(1))


def within_groups(found: Moments, whole: Moments) -> Float[Tensor, " d"]:
    """Variance of every feature inside the average group; where no group has two samples, that of all of them."""
    freedom = whole.mass.sum() - (found.mass > 0).sum()
    return widen((found.mass * found.var[:, 0]).sum(0) / freedom if freedom > 0 else whole.var[0, 0])
