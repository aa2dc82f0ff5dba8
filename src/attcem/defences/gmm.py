"""Clusters of each class, refitted by k-means every epoch: the variance inside them as a penalty."""

from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from attcem.defences.base import NOISE
from attcem.defences.surrogate import Insight, Part, Surrogate
from attcem.layers import TOKENS
from attcem.maths import diagonal_rate, entropy, hinge, segment_count, segment_sum
from attcem.maths.kmeans import kmeans, nearest
from attcem.naming import look_up
from attcem.types import Batch

FITTED, NUMBERS = 100_000, 2**27
"""At most so many tokens, and so many numbers in them, are kept for a fit, drawn at random."""

LARGEST = 1e12  # a token with larger features is left out of a fit: sums of its squares need not be finite

UNLEARNED = {name: kind for name, kind in TOKENS.items() if name != "project"}


EQUATIONS = {
    "hinge": "L_c = Σ_k π_k · ReLU( log(v_k + γ) − log θ )",
    "variance": "L_c = Σ_k π_k · ( v_k + 0.001 )",
    "logdet": "L_c = Σ_k π_k · ( −log π_k + ½ Σ_d log(1 + v_kd / σ²) )",
}


class GMM(Surrogate):
    """Penalises the variance inside each class's clusters, found by k-means at every epoch's end: the original loss.

    ρ_k = min(0.99, 10·n_k/(π_k·N_c));  v̂_k = ρ_k · mean‖ẑ−μ_k‖²/D + (1−ρ_k) · v_k, with μ, π, v of the last fit and n_k
    of the batch;  L = mean over the batch's classes of L_c.
    hinge: L_c = Σ π_k ReLU( log(v̂_k+γ) − log θ );  variance: Σ π_k (v̂_k + 0.001);
    logdet: Σ π_k ( −log π_k + ½ Σ_d log(1 + v̂_kd/σ_n²) ), in nats of the whole latent.
    Before anyone asks for a `review`, clusters are those of the first batch; a class without clusters is left out.

    Args:
        lam: weight of the penalty's gradient in the encoder.
        form: hinge (nothing below a threshold), variance (all of it) or logdet (the published rate, needs Noise).
        clusters: how many of them each class has.
        tokens: flat (the whole latent), spatial (every position a sample of its class) or pooled (mean over positions).
        threshold: noise, constant, schedule or quantile: above which variance a cluster counts as leaking.
        var_threshold: τ of the noise threshold.
        gamma: floor of the variance inside the log.
        loss_scale: factor on the penalty.
        warmup: epochs before it starts.
    """

    mu: Tensor
    pi: Tensor
    var: Tensor
    count: Tensor

    def __init__(
        self,
        lam: float = 16.0,
        form: str = "hinge",
        clusters: int = 5,
        tokens: str = "flat",
        threshold: str = "noise",
        var_threshold: float = 0.125,
        gamma: float = 0.01,
        loss_scale: float = 1.0,
        warmup: int = 0,
    ) -> None:
        super().__init__()
        if tokens == "project":
            raise ValueError(
                'gmm has no tokens="project": a learned map before the variance could shrink the loss by itself, while '
                f"the latent leaks as before; use {' or '.join(f'tokens={name!r}' for name in UNLEARNED)}"
            )
        if clusters < 1 or not gamma > 0:
            raise ValueError(
                f"clusters is {clusters} and gamma is {gamma}: there must be at least 1 cluster, and above 0 a floor "
                "for the log of a variance; the original has clusters=5 and gamma=0.01"
            )
        look_up("tokens", tokens, UNLEARNED)
        self.count_above(threshold, var_threshold, gamma)
        look_up("form", form, FORMS)
        self.lam, self.form, self.clusters, self.tokens = lam, form, clusters, tokens
        self.loss_scale, self.warmup = loss_scale, warmup
        self.needs = {"hinge": self.needs, "variance": frozenset(), "logdet": frozenset({NOISE})}[form]

    @property
    def equation(self) -> str:
        return EQUATIONS[self.form]

    def build(self, latent: tuple[int, ...]) -> None:
        self.tokenise: nn.Module = UNLEARNED[self.tokens](latent, width=0)
        shape = (self.classes, self.clusters, self.tokenise(torch.zeros(1, *latent)).shape[2])
        self.register_buffer("mu", torch.zeros(shape))
        self.register_buffer("pi", torch.zeros(shape[:2]))
        self.register_buffer("var", torch.zeros(shape))
        self.register_buffer("count", torch.zeros(self.classes, dtype=torch.int64))

    def part(self, batch: Batch) -> Part | None:
        part = super().part(batch)
        if part is None:
            return None
        fitted = self.count[part.present] > 0
        return part.of(fitted) if fitted.any() else None

    def losses(self, part: Part) -> tuple[Float[Tensor, " c"], Insight]:
        x = self.tokenise(part.z)
        rows, owner = x.flatten(0, 1), part.y.repeat_interleave(x.shape[1])
        pi, var, seen = (of[part.present].to(x.dtype) for of in (self.pi, self.by_form(self.var), self.count))
        own_name, mu = part.present[owner], self.mu.to(x.dtype)
        index = nearest(rows, own_name, mu, self.pi > 0)
        cluster = owner * self.clusters + index
        members = segment_count(cluster, pi.numel()).reshape(pi.shape)
        squares = self.by_form((rows - mu[own_name, index]).square())
        squares = segment_sum(squares, cluster, pi.numel()).reshape(var.shape)
        rho = (10 * members / (pi * seen.unsqueeze(1)).clamp_min(1)).clamp_max(0.99).unsqueeze(2)
        blended = rho * squares / members.clamp_min(1).unsqueeze(2) + (1 - rho) * var
        resp = F.one_hot(index, self.clusters).to(x.dtype).reshape(*x.shape[:2], self.clusters)
        return FORMS[self.form](self, part, pi, blended), Insight(resp=resp)

    def by_form(self, squares: Float[Tensor, "*n d"]) -> Float[Tensor, "*n features"]:
        """Every feature by itself where the form asks for that, else their mean: with many classes much less to add."""
        return squares if self.form == "logdet" else squares.mean(-1, keepdim=True)

    def total(self, part: Part, losses: Float[Tensor, " c"]) -> Float[Tensor, ""]:
        return losses.mean()  # every class counts the same, however many samples it has

    def observe(self, batch: Batch) -> None:
        if not self.count.any():
            self.review([batch])

    @torch.no_grad()
    def review(self, batches: Iterable[Batch]) -> None:
        """Fit the clusters again, from where they were, with the same draws: a resumed run repeats them."""
        generator = torch.Generator().manual_seed(0)
        most = max(self.clusters, min(FITTED, NUMBERS // self.mu.shape[2]))
        pool, seen = Pool(most, generator), torch.zeros_like(self.count)
        for batch in batches:
            x = self.tokenise(batch.z.to(torch.promote_types(batch.z.dtype, torch.float32)))
            rows, owner = x.flatten(0, 1), batch.y.repeat_interleave(x.shape[1])
            usable = rows.abs().amax(1) < LARGEST
            pool.add(rows[usable], owner[usable])
            seen += segment_count(owner[usable], self.classes)
        if not pool.parts:
            return
        rows, owner, _ = pool.drawn()
        found = kmeans(
            rows, owner, self.classes, self.clusters, self.mu.to(rows.dtype), self.count > 0, generator=generator
        )
        for name in ("mu", "pi", "var"):
            getattr(self, name).copy_(getattr(found, name))
        self.count.copy_(torch.where(found.count > 0, seen, 0))


FORMS: dict[str, Callable[[GMM, Part, Tensor, Tensor], Float[Tensor, " c"]]] = {
    "hinge": lambda gmm, part, pi, var: (pi * hinge(var, gmm.theta(var[pi > 0], part), gmm.gamma).squeeze(2)).sum(1),
    "variance": lambda gmm, part, pi, var: (pi * (var.squeeze(2) + 0.001)).sum(1),
    # the diagonal is never below the full determinant (Hadamard)
    "logdet": lambda gmm, part, pi, var: entropy(pi) + (pi * diagonal_rate(var, gmm.sigma_n)).sum(1),
}
"""What each class loses, from weights and variances of its clusters."""


class Pool:
    """Tokens of a whole data set, or as many of them as are kept, each as likely as any other."""

    def __init__(self, most: int, generator: torch.Generator) -> None:
        self.most, self.generator = most, generator
        self.parts: list[tuple[Tensor, Tensor, Tensor]] = []

    def add(self, rows: Float[Tensor, "n d"], owner: Int64[Tensor, " n"]) -> None:
        """Give every token a random number; those with the smallest stay."""
        number = torch.rand(len(rows), generator=self.generator, dtype=torch.double)
        self.parts.append((rows, owner, number.to(rows.device)))
        if sum(len(owner) for _, owner, _ in self.parts) > 2 * self.most:
            self.parts = [self.drawn()]

    def drawn(self) -> tuple[Float[Tensor, "n d"], Int64[Tensor, " n"], Float[Tensor, " n"]]:
        rows, owner, number = (torch.cat(column) for column in zip(*self.parts, strict=True))
        if len(number) <= self.most:
            return rows, owner, number
        kept = number.topk(self.most, largest=False).indices
        return rows[kept], owner[kept], number[kept]
