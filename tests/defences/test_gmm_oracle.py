"""The clustered penalty against a slow loop over classes, clusters and samples."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.defences.clustered import CLOSE, STATE, every_form, every_token, example, fitted, made
from tests.defences.draws import SIGMA, batch_of
from tests.defences.slow import slow_tokens


@st.composite
def drawn_batches(draw):
    """A batch to fit, a batch to penalise, and the number of classes, few of which are in either."""
    classes, latent = draw(st.sampled_from([1, 3, 8, 600])), draw(st.sampled_from([(1,), (4,), (3, 1, 1), (2, 2, 3)]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 9999)))
    names = torch.randperm(classes, generator=generator)[: draw(st.integers(1, 4))]
    scale, same, constant = draw(st.sampled_from([1e-3, 1.0, 30.0])), draw(st.booleans()), draw(st.booleans())

    def batch(n):
        z = scale * torch.randn(n, *latent, generator=generator, dtype=torch.double)
        z = z[torch.arange(n) // 4] if same else z
        if constant:
            z[:, 0] = 0.5
        return batch_of(z, names[torch.randint(0, len(names), (n,), generator=generator)])

    return batch(draw(st.integers(1, 60))), batch(draw(st.integers(1, 12))), classes


def slow_variances(defence, batch):
    """Class → cluster → π and v̂ of every feature, from the equations."""
    found = {}
    for c in sorted(set(batch.y.tolist())):
        own, clusters = batch.z.detach()[batch.y == c], range(defence.clusters)
        if len(own) < 2 or defence.count[c] == 0:
            continue
        mu, pi, var, seen = (getattr(defence, name)[c] for name in STATE)
        live = [k for k in clusters if pi[k] > 0]
        members = {k: [] for k in live}
        for row in [row for one in own for row in slow_tokens(None, defence.tokens, one)]:
            members[min(live, key=lambda k: ((row - mu[k]) ** 2).sum().item())].append(row)
        found[c] = {}
        for k in live:
            rho = min(0.99, 10 * len(members[k]) / (pi[k] * seen).item())
            here = sum((row - mu[k]) ** 2 for row in members[k]) / max(1, len(members[k]))
            found[c][k] = pi[k].item(), (rho * here + (1 - rho) * var[k]).tolist()
    return found


def slow_penalty(defence, batch, theta=None):
    """The mean over classes of Σ_k π_k · what a cluster loses."""
    found, tau, gamma, sigma = slow_variances(defence, batch), defence.var_threshold, defence.gamma, defence.sigma_n
    theta = tau * sigma**2 + gamma if theta is None else theta

    def lost(pi, var):
        spread = sum(var) / len(var)
        if defence.form == "hinge":
            return max(0.0, math.log(spread + gamma) - math.log(theta))
        if defence.form == "variance":
            return spread + 0.001
        return -math.log(pi) + sum(0.5 * math.log(1 + v / sigma**2) for v in var)

    losses = [sum(pi * lost(pi, var) for pi, var in of_class.values()) for of_class in found.values()]
    return sum(losses) / max(1, len(losses))


@every_form
@every_token
@settings(max_examples=25)
@given(drawn=drawn_batches())
def test_equal_to_the_slow_loop(form, tokens, drawn):
    first, batch, classes = drawn
    defence = made(classes, first.z.shape[1:], form=form, tokens=tokens, fit=[first])
    assert defence.penalty(batch).item() == pytest.approx(slow_penalty(defence, batch), rel=1e-9, abs=1e-9)


@every_form
@every_token
def test_equal_to_the_slow_loop_where_old_and_new_variances_blend(form, tokens):
    batch, defence = example(9), fitted(form=form, tokens=tokens, fit=300)
    found = defence.penalty(batch).item()
    assert found == pytest.approx(slow_penalty(defence, batch), rel=1e-9)
    assert found > 0 and found != pytest.approx(fitted(form=form, tokens=tokens, fit=30).penalty(batch).item())


@pytest.mark.parametrize("threshold", ["constant", "schedule", "quantile"])
def test_every_threshold_is_the_one_it_says(threshold):
    batch, defence = replace(example(), progress=0.25), fitted(threshold=threshold)
    spreads = [sum(var) / len(var) for found in slow_variances(defence, batch).values() for _, var in found.values()]
    theta = {
        "constant": 0.05,
        "schedule": (0.125 * SIGMA**2 + 0.01) ** 0.25,
        "quantile": statistics.median_low(spreads) + 0.01,
    }[threshold]
    assert defence.penalty(batch).item() == pytest.approx(slow_penalty(defence, batch, theta), rel=1e-9)


@pytest.mark.parametrize("threshold", ["noise", "quantile"])
def test_a_cluster_without_weight_takes_no_sample_and_has_no_say(threshold):
    batch, defence = example(), fitted(threshold=threshold)
    before = defence.penalty(batch).item()
    for name in ("pi", "var"):
        getattr(defence, name)[:, :2] = 0
    spreads = [sum(var) / len(var) for found in slow_variances(defence, batch).values() for _, var in found.values()]
    theta = statistics.median_low(spreads) + 0.01 if threshold == "quantile" else None
    assert len(spreads) == 9 and defence.penalty(batch).item() != pytest.approx(before)
    assert defence.penalty(batch).item() == pytest.approx(slow_penalty(defence, batch, theta), rel=1e-9)


@every_form
@every_token
@settings(max_examples=15)
@given(drawn=drawn_batches(), seed=st.integers(0, 99))
def test_sample_order_and_class_names_do_not_matter(form, tokens, drawn, seed):
    first, batch, classes = drawn
    generator = torch.Generator().manual_seed(seed)
    order, rename = torch.randperm(len(batch.y), generator=generator), torch.randperm(classes, generator=generator)
    defence = made(classes, first.z.shape[1:], form=form, tokens=tokens, fit=[first])
    before = defence.penalty(batch)
    for name in STATE:
        old = getattr(defence, name).clone()
        getattr(defence, name)[rename] = old
    after = defence.penalty(batch_of(batch.z[order], rename[batch.y[order]]))
    torch.testing.assert_close(after, before, **CLOSE)


@every_form
def test_statistics_are_those_of_the_class_itself(form):
    z, y = example(60).z.detach(), torch.arange(60) % 6
    wide = batch_of(z * (1 + y)[:, None, None, None], y)
    defence = made(6, form=form, fit=[wide])
    late = batch_of(wide.z[y >= 4], y[y >= 4])
    right, wrong = made(2, form=form), made(2, form=form)
    for name in STATE:
        getattr(right, name).copy_(getattr(defence, name)[4:])
        getattr(wrong, name).copy_(getattr(defence, name)[:2])
    alone = batch_of(late.z, late.y - 4)
    torch.testing.assert_close(defence.penalty(late), right.penalty(alone), **CLOSE)
    assert not torch.isclose(wrong.penalty(alone), right.penalty(alone), rtol=1e-3)


def test_every_class_counts_the_same():
    z, y = example(10).z.detach(), torch.tensor([0] * 8 + [1] * 2)
    z[8:] *= 5
    defence = made(2, form="variance", fit=[batch_of(z, y)])
    first, second = (defence.penalty(batch_of(z[y == c], y[y == c])) for c in (0, 1))
    torch.testing.assert_close(defence.penalty(batch_of(z, y)), (first + second) / 2)


def test_every_position_is_a_sample_of_its_class():
    z = torch.randn(6, 2, 2, 3, dtype=torch.double)
    y = torch.tensor([0, 0, 0, 2, 2, 2])
    spatial = made(3, form="logdet", tokens="spatial", fit=[batch_of(z, y)])
    alone = batch_of(z.flatten(2).transpose(1, 2).reshape(36, 2), y.repeat_interleave(6))
    flat = made(3, (2,), form="logdet", fit=[alone])
    assert spatial.count.tolist() == [18, 0, 18] and spatial.mu.shape == (3, 5, 2)
    torch.testing.assert_close(spatial.penalty(batch_of(z, y)), flat.penalty(alone), **CLOSE)


def test_the_diagonal_is_never_below_the_determinant_of_what_was_fitted():
    batch = example(40, latent=(4,), classes=1)
    mixed = batch_of(batch.z.detach() @ torch.randn(4, 4, dtype=torch.double), batch.y)
    found = made(1, (4,), form="logdet", clusters=1, fit=[mixed]).penalty(mixed)
    full = 0.5 * torch.logdet(torch.eye(4) + mixed.z.T.cov(correction=0) / SIGMA**2)
    assert full * 1.01 < found
    apart = batch_of(torch.linalg.svd(mixed.z - mixed.z.mean(0), full_matrices=False)[0], batch.y)
    exact = 0.5 * torch.logdet(torch.eye(4) + apart.z.T.cov(correction=0) / SIGMA**2)
    torch.testing.assert_close(made(1, (4,), form="logdet", clusters=1, fit=[apart]).penalty(apart), exact)
