"""The rate bound: its pieces against slow forms, and the whole of it against information that is known."""

import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attcem.maths import (
    assignment_information,
    covariance,
    diagonal_rate,
    entropy,
    full_rate,
    gram_rate,
    moments,
    rate_bound,
)
from tests.maths.draws import batches
from tests.maths.information import integrated_information

EXACT = {"atol": 1e-9, "rtol": 1e-9}
SIGMAS = st.sampled_from([0.025, 0.3, 2.0])


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def bound(x, resp, sigma, form="full"):
    """The rate bound of equally likely samples [n d] under responsibilities [n k]."""
    n, k = resp.shape
    pi = resp.mean(0)
    found = moments(x, torch.zeros(n, dtype=torch.int64), 1, resp)
    rows = torch.cat(
        [(resp[:, i : i + 1] / found.mass[0, i].clamp_min(1e-300)).sqrt() * (x - found.mu[0, i]) for i in range(k)]
    )
    rate = {
        "diag": lambda: diagonal_rate(found.var[0], sigma),
        "full": lambda: full_rate(covariance(x, 0 * resp[:, 0].long(), 1, resp).var[0], sigma),
        "gram": lambda: gram_rate(rows, torch.arange(k).repeat_interleave(n), k, sigma),
    }[form]()
    return rate_bound(assignment_information(pi, resp), pi, rate).item()


@settings(max_examples=50)
@given(batch=batches(), sigma=SIGMAS)
def test_pieces_equal_sums_written_out(batch, sigma):
    x, resp, y, classes = batch
    resp = resp.flatten(0, 1)
    pi = resp.mean(0)
    slow = -sum(p * math.log(p) for p in pi.tolist())
    slow += sum(p * math.log(p) for row in resp.tolist() for p in row) / len(resp)
    torch.testing.assert_close(assignment_information(pi, resp).item(), slow, **EXACT)
    var = moments(x, y, classes).var
    rate = diagonal_rate(var, sigma)
    for c in set(y.tolist()):
        slow = sum(0.5 * math.log(1 + v / sigma**2) for v in var[c, 0].tolist())
        torch.testing.assert_close(rate[c, 0].item(), slow, **EXACT)


@settings(max_examples=50)
@given(batch=batches(most_tokens=1), sigma=SIGMAS)
def test_the_gram_form_is_the_full_form_is_the_eigenvalues(batch, sigma):
    x, _, y, classes = batch
    x = x.squeeze(1)
    cov, found = covariance(x, y, classes).var.squeeze(1), moments(x, y, classes)
    rows = (x - found.mu[y, 0]) / found.mass[y].sqrt()
    full, gram = full_rate(cov, sigma), gram_rate(rows, y, classes, sigma)
    eigenvalues = torch.stack([torch.linalg.eigvalsh(own) for own in cov]).clamp_min(0)
    torch.testing.assert_close(full, 0.5 * torch.log1p(eigenvalues / sigma**2).sum(-1), atol=1e-8, rtol=1e-8)
    torch.testing.assert_close(gram, full, atol=1e-8, rtol=1e-8)
    assert (diagonal_rate(found.var[:, 0], sigma) >= full - 1e-9).all()


def test_gradients():
    x, y = random(7, 3).requires_grad_(), torch.tensor([0, 0, 2, 2, 2, 1, 0])
    assert torch.autograd.gradcheck(lambda x: full_rate(covariance(x, y, 4).var, 0.5), x)
    assert torch.autograd.gradcheck(lambda x: gram_rate(x, y, 4, 0.5), x)
    assert torch.autograd.gradcheck(lambda x: diagonal_rate(moments(x, y, 4).var, 0.5), x)
    logits = random(7, 3, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda r: assignment_information(r.softmax(-1).mean(0), r.softmax(-1)), logits)


def test_a_certain_assignment_has_no_entropy_and_a_finite_gradient():
    resp = torch.eye(3)[[0, 1, 1, 2]].requires_grad_()
    assert entropy(resp).abs().max() == 0
    assignment_information(resp.mean(0), resp).backward()
    assert resp.grad.isfinite().all()
    weight = torch.tensor([1.0, 1, 1, 0])
    information = assignment_information(torch.tensor([1 / 3, 2 / 3]), resp.detach(), weight)
    assert information.item() == pytest.approx(math.log(3) - 2 / 3 * math.log(2), rel=1e-6)


def test_single_precision_keeps_the_noise_next_to_a_signal_ten_million_times_larger():
    rows = random(20, 400) * 50
    y = torch.arange(20) % 4
    exact = gram_rate(rows, y, 4, 0.025)
    torch.testing.assert_close(gram_rate(rows.float(), y, 4, 0.025).double(), exact, rtol=1e-4, atol=0)


def test_overflow_is_not_a_number_that_one_could_believe():
    rows = torch.tensor([[torch.inf, 0.0], [1.0, 2.0], [torch.nan, 1.0]])
    assert not gram_rate(rows, torch.tensor([0, 1, 2]), 3, 0.1)[[0, 2]].isfinite().any()
    assert full_rate(1e12 * torch.eye(3), 1.0).isfinite() and not full_rate(1e16 * torch.eye(3), 1.0).isfinite()


@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan")])
def test_without_noise_there_is_no_bound(sigma):
    with pytest.raises(ValueError, match="add Noise"):
        diagonal_rate(torch.ones(3), sigma)
    with pytest.raises(ValueError, match="add Noise"):
        full_rate(torch.eye(3), sigma)
    with pytest.raises(ValueError, match="add Noise"):
        gram_rate(torch.ones(2, 3), torch.tensor([0, 0]), 1, sigma)


@settings(max_examples=40)
@example(n=1, d=1, k=3, clusters=1, sharpness=300.0, form="gram", seed=2)  # a component without any mass
@given(
    n=st.integers(1, 12),
    d=st.integers(1, 2),
    k=st.integers(1, 4),
    clusters=st.integers(1, 3),
    sharpness=st.sampled_from([0.1, 1.0, 10.0, 300.0]),
    form=st.sampled_from(["diag", "full", "gram"]),
    seed=st.integers(0, 9999),
)
def test_never_below_the_truth_for_any_responsibilities(n, d, k, clusters, sharpness, form, seed):
    """On equally likely points every expectation is a finite sum, so no sampling error has to be forgiven."""
    x = 0.3 * random(n, d, seed=seed) + random(clusters, d, seed=seed + 1)[torch.arange(n) % clusters]
    resp = (sharpness * random(n, k, seed=seed + 2)).softmax(-1)
    assert bound(x, resp, 0.2, form) >= integrated_information(x, 0.2) - 1e-6


@pytest.mark.parametrize("form", ["diag", "full", "gram"])
def test_gaussian_latents(form):
    """Closed form ½ log det(I + AAᵀ/σ²); one component reaches it with full covariance, random ones stay above."""
    mix, n, sigma = random(3, 3, seed=5), 1500 if form == "gram" else 20_000, 0.4
    x = random(n, 3, seed=6) @ mix.T
    truth = full_rate(x.T.cov(correction=0), sigma).item()
    closed = 0.5 * torch.logdet(torch.eye(3) + mix @ mix.T / sigma**2).item()
    assert truth == pytest.approx(closed, rel=0.02)
    one = bound(x, torch.ones(n, 1, dtype=torch.double), sigma, form)
    assert one >= truth + 0.05 if form == "diag" else one == pytest.approx(truth, rel=1e-8)
    if form == "gram":
        return  # its matrix grows with samples × components; it equals the full form elsewhere
    for seed in range(5):
        resp = (x @ random(3, 4, seed=seed) + random(4, seed=seed)).softmax(-1)
        assert bound(x, resp, sigma, form) >= closed - 0.02


@pytest.mark.parametrize("form", ["diag", "full"])
def test_the_true_posterior_of_a_well_separated_mixture_is_tight(form):
    centres, weights, std, sigma = torch.tensor([-6.0, 0.0, 7.0]).double(), [0.2, 0.5, 0.3], 0.7, 0.3
    component = torch.multinomial(torch.tensor(weights), 40_000, True, generator=torch.Generator().manual_seed(0))
    x = (centres[component] + std * random(40_000, seed=9)).unsqueeze(1)

    def log_joint(at, spread):
        terms = -((at - centres) ** 2) / (2 * spread**2) - math.log(spread * math.sqrt(2 * math.pi))
        return terms + torch.tensor(weights).double().log()

    z = torch.linspace(-14, 15, 20_001, dtype=torch.double).unsqueeze(1)
    log_density = torch.logsumexp(log_joint(z, math.hypot(std, sigma)), 1)
    h_z = -(log_density.exp() * log_density).sum().item() * (z[1] - z[0]).item()
    truth = h_z - 0.5 * math.log(2 * math.pi * math.e * sigma**2)
    posterior = log_joint(x, std).softmax(-1)
    assert truth - 0.01 <= bound(x, posterior, sigma, form) <= 1.05 * truth
    assert bound(x, torch.ones_like(x), sigma, form) > 1.05 * truth  # one component for all is loose
