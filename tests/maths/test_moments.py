"""Moments of every class at once against sums written out one by one."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.maths import covariance, merge, moments
from tests.maths.draws import batches

EXACT = {"atol": 1e-9, "rtol": 1e-9}


def slow_moments(x, resp, y, classes, unbiased):
    """Token by token, straight from the equations."""
    k, d = resp.shape[-1], x.shape[-1]
    mass, mu, var = torch.zeros(classes, k), torch.zeros(classes, k, d), torch.zeros(classes, k, d)
    mass, mu, var = mass.double(), mu.double(), var.double()
    for c in set(y.tolist()):
        for slot in range(k):
            tokens = [(x[i, t], resp[i, t, slot]) for i in range(len(x)) if y[i] == c for t in range(x.shape[1])]
            total = sum(r for _, r in tokens)
            mean = sum(r * value for value, r in tokens) / total
            spread = sum(r * (value - mean) ** 2 for value, r in tokens)
            freedom = total - sum(r**2 for _, r in tokens) / total if unbiased else total
            mass[c, slot], mu[c, slot] = total, mean
            var[c, slot] = spread / freedom if not unbiased or len(tokens) > 1 else 0.0
    return mass, mu, var


@settings(max_examples=60)
@given(batch=batches(), unbiased=st.booleans())
def test_equal_to_the_slow_loop(batch, unbiased):
    x, resp, y, classes = batch
    fast = moments(x, y, classes, resp, unbiased=unbiased)
    for mine, slow in zip((fast.mass, fast.mu, fast.var), slow_moments(x, resp, y, classes, unbiased), strict=True):
        torch.testing.assert_close(mine, slow, **EXACT)


@settings(max_examples=30)
@given(batch=batches())
def test_a_class_without_slots_is_what_torch_says_of_its_samples(batch):
    x, _, y, classes = batch
    biased, unbiased = moments(x, y, classes), moments(x, y, classes, unbiased=True)
    full = covariance(x, y, classes).var.squeeze(1)
    for c in range(classes):
        own = x[y == c].flatten(0, 1)
        assert biased.mass[c, 0] == len(own)
        if len(own) == 0:
            assert not biased.mu[c].any() and not biased.var[c].any() and not full[c].any()
            continue
        torch.testing.assert_close(biased.mu[c, 0], own.mean(0), **EXACT)
        torch.testing.assert_close(biased.var[c, 0], own.var(0, correction=0), **EXACT)
        torch.testing.assert_close(full[c], own.T.cov(correction=0).reshape(full[c].shape), **EXACT)
        expected = own.var(0) if len(own) > 1 else torch.zeros_like(own[0])
        torch.testing.assert_close(unbiased.var[c, 0], expected, **EXACT)


@settings(max_examples=30)
@given(batch=batches(), seed=st.integers(0, 99))
def test_sample_order_and_class_names_do_not_matter(batch, seed):
    x, resp, y, classes = batch
    generator = torch.Generator().manual_seed(seed)
    order, rename = torch.randperm(len(x), generator=generator), torch.randperm(classes, generator=generator)
    first, second = moments(x, y, classes, resp), moments(x[order], rename[y[order]], classes, resp[order])
    for name in ("mass", "mu", "var"):
        torch.testing.assert_close(getattr(second, name)[rename], getattr(first, name), **EXACT)


def test_samples_are_tokens_of_their_own():
    x, y = torch.randn(5, 3, dtype=torch.double), torch.tensor([0, 1, 1, 0, 1])
    torch.testing.assert_close(moments(x, y, 2).var, moments(x.unsqueeze(1), y, 2).var)
    torch.testing.assert_close(covariance(x, y, 2).var, covariance(x.unsqueeze(1), y, 2).var)


def test_zero_weight_leaves_a_sample_out():
    x, y = torch.randn(6, 3, dtype=torch.double), torch.tensor([0, 0, 0, 1, 1, 1])
    weight = torch.tensor([1.0, 1, 0, 0, 0, 0], dtype=torch.double)
    torch.testing.assert_close(moments(x, y, 2, weight[:, None]).var[0, 0], x[:2].var(0, correction=0), **EXACT)
    torch.testing.assert_close(covariance(x, y, 2, weight[:, None]).var[0, 0], x[:2].T.cov(correction=0), **EXACT)
    assert not moments(x, y, 2, weight[:, None]).var[1].any() and not covariance(x, y, 2, weight[:, None]).var[1].any()


def test_a_large_offset_costs_no_digits():
    x = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    y = torch.zeros(200, dtype=torch.int64)
    truth = x.double().var(0, correction=0)
    found = moments(x + 4096, y, 1).var[0, 0]  # E x² − (E x)² in single precision would be off by about 1
    torch.testing.assert_close(found.double(), truth, rtol=2e-3, atol=0)


@pytest.mark.parametrize("unbiased", [False, True])
def test_gradients(unbiased):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(6, 2, 2, generator=generator, dtype=torch.double, requires_grad=True)
    logits = torch.randn(6, 2, 3, generator=generator, dtype=torch.double, requires_grad=True)
    y = torch.tensor([0, 0, 0, 2, 2, 3])

    def all_moments(x, logits):
        found = moments(x, y, 5, logits.softmax(-1), unbiased=unbiased)
        return found.mass, found.mu, found.var

    assert torch.autograd.gradcheck(all_moments, (x, logits))
    assert torch.autograd.gradcheck(lambda *a: covariance(a[0], y, 5, a[1].softmax(-1)).var, (x, logits))


def test_a_slot_that_nobody_chose_has_finite_gradients():
    x = torch.randn(4, 3, requires_grad=True)
    logits = torch.zeros(4, 2).index_fill(1, torch.tensor([1]), -1e4).requires_grad_()
    found = moments(x, torch.tensor([0, 0, 1, 1]), 3, logits.softmax(-1), unbiased=True)
    (found.mass.sum() + found.mu.sum() + found.var.sum()).backward()
    assert x.grad.isfinite().all() and logits.grad.isfinite().all()


def test_nothing_of_the_size_of_samples_times_slots_is_kept_for_the_backward_pass():
    n, d, k, classes = 40, 50, 16, 2
    x, resp = torch.randn(n, d, requires_grad=True), torch.rand(n, k, requires_grad=True)
    kept: dict[int, int] = {}

    def remember(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes() // tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(remember, lambda tensor: tensor):
        moments(x, torch.arange(n) % classes, classes, resp)
    assert sum(kept.values()) < 2 * (n * d + n * k + 3 * classes * k * d) < n * k * d


@settings(max_examples=30)
@given(batch=batches())
def test_full_covariances_under_responsibilities_have_the_variances_on_their_diagonal(batch):
    x, resp, y, classes = batch
    full, diagonal = covariance(x, y, classes, resp), moments(x, y, classes, resp)
    torch.testing.assert_close(full.var.diagonal(dim1=-2, dim2=-1), diagonal.var, **EXACT)
    torch.testing.assert_close(full.mu, diagonal.mu, **EXACT)
    own, weight = x[y == y[0]].flatten(0, 1), resp[y == y[0]].flatten(0, 1)[:, 0]
    slow = sum(
        w * torch.outer(row - full.mu[y[0], 0], row - full.mu[y[0], 0]) for row, w in zip(own, weight, strict=True)
    )
    torch.testing.assert_close(full.var[y[0], 0], slow / weight.sum(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", [moments, covariance])
@settings(max_examples=30)
@given(batch=batches(), cut=st.integers(0, 12))
def test_merging_two_halves_gives_the_moments_of_the_whole(form, batch, cut):
    x, resp, y, classes = batch
    halves = [form(x[half], y[half], classes, resp[half]) for half in (slice(None, cut), slice(cut, None))]
    merged, whole = merge(*halves, keep=0.5), form(x, y, classes, resp)
    torch.testing.assert_close(2 * merged.mass, whole.mass, **EXACT)
    torch.testing.assert_close(merged.mu, whole.mu, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(merged.var, whole.var, rtol=1e-9, atol=1e-7)
