"""K-means inside every class at once (docs/surrogates.md#gmm); loops only over clusters and rounds."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from attcem.maths.moments import Segment, segment_count, segment_sum

Samples = Float[Tensor, "n d"]
Centres = Float[Tensor, "c k d"]
PerSample = Float[Tensor, " n"]
Source = torch.Generator | None

AT_ONCE = 1024  # deviations of so many samples stay in the cache


@dataclass(frozen=True)
class Clusters:
    """What k-means found in each segment; a cluster without samples has π = 0 and no variance."""

    mu: Centres
    pi: Float[Tensor, "c k"]
    var: Float[Tensor, "c k d"]  # mean of (x−μ)² over the cluster's samples, feature by feature
    count: Int64[Tensor, " c"]  # samples of each segment


@torch.no_grad()
def kmeans(
    x: Samples,
    segment: Segment,
    segments: int,
    k: int = 5,
    start: Centres | None = None,
    started: Bool[Tensor, " c"] | None = None,
    iters: int = 50,
    generator: Source = None,
) -> Clusters:
    """Lloyd's rounds until no sample changes its cluster, from `start` or, where not `started`, from k-means++.

    A cluster that runs empty is drawn anew, as k-means++ would: latents drift from one fit to the next, and a warm
    start that kept lost centres would end with a single cluster. Memory is that of x and of the result.
    """
    mu = x.new_zeros(segments, k, x.shape[1]) if start is None else start.clone()
    if started is None:
        started = torch.full_like(mu[:, 0, 0], start is not None, dtype=torch.bool)
    first = draw(torch.ones_like(x[:, 0]), segment, segments, generator)
    fresh = ~started & (first < len(x))
    mu[fresh] = x[first[fresh]].unsqueeze(1)
    others = fresh.unsqueeze(1) & (torch.arange(k, device=x.device) > 0)
    mu = fill(x, segment, mu, others, apart(x, segment, mu[:, 0]), generator)
    index = None
    for _ in range(iters):
        found, distance = assign(x, segment, mu)
        if index is not None and torch.equal(found, index):
            break
        index, cluster = found, segment * k + found
        members = segment_count(cluster, segments * k).reshape(segments, k)
        # Centres move by their samples' mean deviation: repeated samples are met exactly, offsets cost no digits.
        off = segment_sum(mu[segment, index].sub_(x), cluster, segments * k).reshape(mu.shape)
        mu = fill(x, segment, mu - off / members.clamp_min(1).unsqueeze(2), members == 0, distance, generator)
    index, _ = assign(x, segment, mu)
    cluster, count = segment * k + index, segment_count(segment, segments)
    members = segment_count(cluster, segments * k).reshape(segments, k)
    spread = segment_sum(mu[segment, index].sub_(x).square_(), cluster, segments * k)
    return Clusters(
        mu=mu,
        pi=members.to(x.dtype) / count.clamp_min(1).unsqueeze(1),
        var=spread.reshape(mu.shape) / members.clamp_min(1).unsqueeze(2),
        count=count,
    )


@torch.no_grad()
def nearest(x: Samples, segment: Segment, mu: Centres, alive: Bool[Tensor, "c k"] | None = None) -> Int64[Tensor, " n"]:
    """Which of its own segment's centres lies nearest to each sample; only those `alive` can win."""
    return assign(x, segment, mu, alive)[0]


def assign(
    x: Samples, segment: Segment, mu: Centres, alive: Bool[Tensor, "c k"] | None = None
) -> tuple[Int64[Tensor, " n"], PerSample]:
    """The nearest centre, the first of equally near ones, and its squared distance."""
    alive = torch.ones_like(mu[..., 0], dtype=torch.bool) if alive is None else alive
    # a sample that is infinitely far from everything belongs to a cluster that lives, too.
    index = alive.long().argmax(1)[segment]
    distance = torch.full_like(x[:, 0], torch.inf)
    for j in range(mu.shape[1]):
        candidate = apart(x, segment, mu[:, j]).masked_fill_(~alive[segment, j], torch.inf)
        closer = candidate < distance
        index, distance = torch.where(closer, j, index), torch.where(closer, candidate, distance)
    return index, distance


def fill(
    x: Samples, segment: Segment, mu: Centres, missing: Bool[Tensor, "c k"], distance: PerSample, generator: Source
) -> Centres:
    """Put each missing centre on a sample, drawn in proportion to its squared distance from the centres so far.

    Where every sample already is a centre there is nothing to draw, and the centre stays.
    """
    wanted = missing & (segment_sum(distance, segment, len(mu)) > 0).unsqueeze(1)
    if not wanted.any():
        return mu
    mu = mu.clone()
    for j in range(mu.shape[1]):
        row = draw(distance, segment, len(mu), generator)
        placed = wanted[:, j] & (row < len(x))
        mu[placed, j] = x[row[placed]]
        closer = torch.minimum(distance, apart(x, segment, mu[:, j]))
        distance = torch.where(placed[segment], closer, distance)
    return mu


def draw(rate: PerSample, segment: Segment, segments: int, generator: Source) -> Int64[Tensor, " c"]:
    """A row of each segment with probability ∝ its rate: the first to arrive; n where no row has a rate.

    Of independent arrivals, exponential with these rates, each is the first with just that probability.
    """
    device = rate.device if generator is None else generator.device
    wait = torch.empty(rate.shape, dtype=rate.dtype, device=device).exponential_(generator=generator)
    speed = rate / wait.to(rate.device)
    fastest = speed.new_zeros(segments).scatter_reduce(0, segment, speed, "amax")
    row = torch.arange(len(rate), device=rate.device)
    row = torch.where((speed == fastest[segment]) & (speed > 0), row, len(rate))
    return row.new_full((segments,), len(rate)).scatter_reduce(0, segment, row, "amin")


def apart(x: Samples, segment: Segment, centre: Float[Tensor, "c d"]) -> PerSample:
    """Squared distance of each sample to its segment's centre."""
    few = zip(x.split(AT_ONCE), segment.split(AT_ONCE), strict=True)
    return torch.cat([centre[owner].sub_(rows).square_().sum(1) for rows, owner in few])
