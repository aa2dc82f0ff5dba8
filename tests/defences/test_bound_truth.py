"""The bound against the information itself: never below it, close to it where it can be, and training keeps it so."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from attcem.defences import Bound
from tests.defences.bounds import FORMS
from tests.defences.draws import batch_of, own, ready
from tests.defences.slow import classes_of
from tests.maths.information import integrated_information, sampled_information


@settings(max_examples=150)
@given(
    n=st.integers(2, 10),
    classes=st.integers(1, 3),
    latent=st.sampled_from([(1,), (2,), (1, 1, 2), (2, 1, 1)]),
    assign=st.sampled_from(["class", "gated", "slot"]),
    form=st.sampled_from(FORMS),
    sharpness=st.sampled_from([0.0, 1.0, 5.0]),
    seed=st.integers(0, 9999),
)
@torch.no_grad()
def test_never_below_the_information_of_a_few_points(n, classes, latent, assign, form, sharpness, seed):
    """On equally likely points every expectation is a finite sum, so no sampling error has to be forgiven."""
    generator = torch.Generator().manual_seed(seed)
    z = 0.5 * torch.randn(n, *latent, generator=generator, dtype=torch.double)
    batch = batch_of(z, torch.randint(0, classes, (n,), generator=generator))
    cov, tokens = form
    defence = Bound(assign=assign, cov=cov, tokens=tokens, width=4, slots=3, iters=2)
    defence = ready(defence, latent, classes, 0.2, unlike_start=sharpness, seed=seed)
    counted = list(classes_of(batch).values())
    assume(counted)
    assert defence.nats(batch).item() >= integrated_information(torch.cat(counted).flatten(1), 0.2) - 1e-6


def clusters(n, latent, seed=0):
    """Four of them, unequal and overlapping, and which one each sample is from."""
    generator = torch.Generator().manual_seed(seed)
    d = math.prod(latent)
    component = torch.multinomial(torch.tensor([0.4, 0.3, 0.2, 0.1]), n, True, generator=generator)
    centres, narrow = (torch.randn(4, d, generator=generator, dtype=torch.double) for _ in range(2))
    z = 1.5 * centres[component] + 0.5 * narrow[component] * torch.randn(n, d, generator=generator, dtype=torch.double)
    return z.reshape(n, *latent), component


def curve(n, latent, seed=0):
    """All on a line that winds through the space: as far from Gaussian as latents get."""
    t = torch.arange(n, dtype=torch.double) / n * 6.28
    return torch.stack([torch.sin(t * (1 + i // 2) + i) for i in range(math.prod(latent))], 1).reshape(n, *latent)


@pytest.mark.parametrize(("cov", "tokens"), FORMS)
@pytest.mark.parametrize("assign", ["class", "gated", "slot"])
@torch.no_grad()
def test_never_below_the_information_of_many_points_whatever_attention_decides(assign, cov, tokens):
    latent, sigma = (3, 1, 2), 0.5
    n = 250 if cov == "gram" else 500
    mixed, component = clusters(n, latent)
    one, noise = torch.zeros_like(component), torch.arange(n) % 4
    for z, labels in ((mixed, (one, component, noise)), (curve(n, latent), (one, noise))):
        truth = sampled_information(z, sigma, draws=4)
        assert 1 < truth < math.log(n) - 1  # neither nothing nor a number for every sample
        for seed, y in enumerate(labels):
            for start in (0.0, 1.0):
                defence = Bound(assign=assign, cov=cov, tokens=tokens, slots=4, width=6)
                defence = ready(defence, latent, 4, sigma, unlike_start=start, seed=seed)
                assert defence.nats(batch_of(z, y)).item() >= truth - 0.03


@pytest.mark.parametrize("assign", ["class", "gated", "slot"])
@torch.no_grad()
def test_gaussian_latents_of_which_the_information_is_known(assign):
    """½ log det(I + AAᵀ/σ²): reached by the full covariance of one class, never undercut."""
    generator = torch.Generator().manual_seed(0)
    mix, sigma = torch.randn(4, 4, generator=generator, dtype=torch.double), 0.4
    z = torch.randn(3000, 4, generator=generator, dtype=torch.double) @ mix.T
    batch = batch_of(z, torch.zeros(3000, dtype=torch.int64))
    truth = 0.5 * torch.logdet(torch.eye(4) + mix @ mix.T / sigma**2).item()
    for cov in ("diag", "channel"):
        for seed in range(3):
            found = ready(Bound(assign=assign, cov=cov), (4,), 1, sigma, seed=seed).nats(batch).item()
            assert found >= truth - 0.05
            if assign == "class":
                assert found > truth + 0.1 if cov == "diag" else found == pytest.approx(truth, rel=0.02)
    if assign != "slot":
        return
    few = batch_of(z[:400], batch.y[:400])  # its matrix is as large as the batch
    for way in ("class", "gated", "slot"):
        assert ready(Bound(assign=way, cov="gram", slots=2), (4,), 1, sigma).nats(few).item() >= truth - 0.1


SEPARATE, NARROW = 0.3, 0.5


def separate():
    """Three round clusters far from each other, the moments of each exact, and what they tell: H + 3·½ log(1+v/σ²)."""
    z, y = [], []
    for c, count in enumerate((400, 1000, 600)):
        own = torch.randn(count, 3, generator=torch.Generator().manual_seed(c), dtype=torch.double)
        own = own - own.mean(0)
        own = own @ torch.linalg.inv(torch.linalg.cholesky(own.T @ own / count)).T
        z.append(4 * torch.eye(3).double()[c] + NARROW * own)
        y += [c] * count
    told = -sum(p * math.log(p) for p in (0.2, 0.5, 0.3))
    return torch.cat(z), torch.tensor(y), told + 1.5 * math.log(1 + NARROW**2 / SEPARATE**2)


@pytest.mark.parametrize("cov", ["diag", "channel"])
def test_within_a_twentieth_of_the_truth_where_classes_are_the_clusters(cov):
    z, y, truth = separate()
    assert sampled_information(z, SEPARATE, draws=2) <= truth + 0.05
    assert truth - 1e-6 <= ready(Bound(cov=cov), (3,), 3, SEPARATE).nats(batch_of(z, y)).item() <= 1.05 * truth
    together = ready(Bound(cov=cov), (3,), 1, SEPARATE).nats(batch_of(z, 0 * y)).item()
    assert together > 1.3 * truth


def trained(defence, batch, steps):
    """The bound in every step of training all that the surrogate may move; the latents stay."""
    optimiser, values = torch.optim.Adam(own(defence), lr=0.03), []
    for _ in range(steps):
        optimiser.zero_grad()
        nats = defence.nats(batch)
        nats.backward()
        optimiser.step()
        values.append(nats.item())
    return values


@pytest.mark.parametrize("assign", ["gated", "slot"])
def test_training_the_attention_tightens_the_bound_and_never_breaks_it(assign):
    """The opposite of what befalls a gated variance."""
    z, y, truth = separate()
    defence = ready(Bound(assign=assign, slots=3), (3,), 1, SEPARATE, unlike_start=0.0)
    values = trained(defence, batch_of(z, 0 * y), 40)
    assert min(values) >= truth - 0.01 and values[0] > 1.3 * truth and values[-1] < 0.9 * values[0]
    if assign == "gated":
        assert values[-1] < 1.05 * truth


def test_positions_that_differ_independently_are_all_counted():
    """What one position tells the other does not: the truth is the sum, and trained attention comes close to it."""
    z, _, truth = separate()
    other = z[torch.randperm(len(z), generator=torch.Generator().manual_seed(5))]
    batch = batch_of(torch.stack([z, other], 2).unsqueeze(2), torch.zeros(len(z), dtype=torch.int64))
    defence = ready(Bound(assign="gated", tokens="spatial", slots=3), (3, 1, 2), 1, SEPARATE, unlike_start=0.0)
    values = trained(defence, batch, 40)
    assert 2 * truth - 0.02 <= min(values) and values[-1] < 1.05 * 2 * truth < 0.8 * values[0]


@pytest.mark.parametrize("tokens", ["flat", "spatial"])
@pytest.mark.parametrize("assign", ["gated", "slot"])
def test_training_the_attention_on_a_curve_never_breaks_the_bound(assign, tokens):
    z, sigma = curve(500, (3, 1, 2)), 0.1
    defence = ready(Bound(assign=assign, tokens=tokens, slots=4, iters=1), (3, 1, 2), 1, sigma, unlike_start=0.0)
    values = trained(defence, batch_of(z, torch.zeros(500, dtype=torch.int64)), 60)
    assert sampled_information(z, sigma, draws=4) - 0.03 <= min(values) < values[0] - 0.3
