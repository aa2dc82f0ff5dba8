"""Clusters are fitted to what a review shows, from where they were, and kept."""

from __future__ import annotations

import pytest
import torch

from attcem.defences import gmm as module
from attcem.defences.gmm import Pool
from tests.defences.clustered import CLOSE, LATENT, STATE, example, fitted, made
from tests.defences.draws import batch_of


def blobs(seed, classes=2, k=3, each=8, latent=LATENT):
    """A batch of well separated clusters, and their centres."""
    mu = 20 * torch.randn(classes, k, 12, generator=torch.Generator().manual_seed(7), dtype=torch.double)
    noise = torch.randn(each, classes, k, 12, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    y = torch.arange(classes).repeat_interleave(k).repeat(each)
    return batch_of((mu + 0.1 * noise).reshape(-1, *latent), y), mu


def test_a_review_of_all_batches_finds_the_centres():
    (first, mu), (second, _) = blobs(1), blobs(2)
    defence = made(2, clusters=3, fit=iter([first, second]))
    closest = torch.cdist(mu, defence.mu).argmin(2)
    assert torch.equal(closest.sort(1).values, torch.arange(3).expand(2, 3))
    both = torch.cat([first.z, second.z]).flatten(1).reshape(16, 2, 3, 12)
    for c in range(2):
        torch.testing.assert_close(defence.mu[c, closest[c]], both[:, c].mean(0), **CLOSE)
        torch.testing.assert_close(defence.var[c, closest[c]], both[:, c].var(0, correction=0), **CLOSE)
    torch.testing.assert_close(defence.pi, torch.full((2, 3), 1 / 3, dtype=torch.double))
    assert defence.count.tolist() == [48, 48]


def test_a_review_starts_from_the_clusters_before():
    batch, _ = blobs(1)
    turned = batch_of(batch.z.flip(0) + 0.5, batch.y.flip(0))
    defence, fresh = made(2, clusters=3, fit=[batch]), made(2, clusters=3, fit=[turned])
    before = defence.mu.clone()
    defence.review([turned])
    torch.testing.assert_close(defence.mu, before + 0.5, **CLOSE)
    assert not torch.allclose(fresh.mu, before + 0.5)


def test_a_review_of_nothing_changes_nothing():
    defence = fitted()
    before = defence.count.clone()
    defence.review([])
    assert torch.equal(defence.count, before) and before.any()


def test_the_first_batch_gives_clusters_and_later_ones_do_not():
    defence, first = made(), example(30, seed=3)
    defence.observe(first)
    assert defence.penalty(first) > 0
    torch.testing.assert_close(defence.mu, made(fit=[first]).mu)
    before = defence.mu.clone()
    defence.observe(example(30, seed=4))
    assert torch.equal(defence.mu, before)


def test_a_sample_that_is_no_number_does_not_spoil_the_fit():
    batch = example()
    z = batch.z.detach().clone()
    z[0], z[1, 0] = torch.nan, torch.inf
    spoilt, clean = made(fit=[batch_of(z, batch.y)]), made(fit=[batch_of(z[2:], batch.y[2:])])
    for name in STATE:
        assert getattr(spoilt, name).isfinite().all()
        torch.testing.assert_close(getattr(spoilt, name), getattr(clean, name))


def test_of_too_many_tokens_some_are_fitted_and_all_are_counted(monkeypatch):
    batches = [example(20, seed=seed) for seed in range(5)]
    full = made(tokens="spatial", fit=batches)
    monkeypatch.setattr(module, "FITTED", 90)
    few, again = (made(tokens="spatial", fit=batches) for _ in range(2))
    assert torch.equal(few.count, full.count) and few.count.sum() == 600
    assert torch.equal(few.mu, again.mu) and not torch.allclose(few.mu, full.mu)
    assert (few.pi * 90).sum() == pytest.approx(3 * 90) and few.pi[few.pi > 0].min() > 1 / 90


def test_every_token_is_as_likely_to_be_kept_as_any_other():
    generator, kept = torch.Generator().manual_seed(0), torch.zeros(60)
    for _ in range(1000):
        pool = Pool(10, generator)
        for rows in torch.arange(60.0).unsqueeze(1).split(6):
            pool.add(rows, torch.zeros(6, dtype=torch.int64))
            assert sum(len(owner) for _, owner, _ in pool.parts) <= 20
        rows = pool.drawn()[0].flatten().long()
        assert len(rows.unique()) == 10
        kept[rows] += 1
    assert (kept / 1000 - 1 / 6).abs().max() < 0.05


def test_clusters_are_saved_and_resumed():
    batch, defence, other = example(), fitted(), made()
    assert other.penalty(batch) == 0
    other.load_state_dict(defence.state_dict())
    assert torch.equal(other.penalty(batch), defence.penalty(batch)) and set(STATE) <= set(defence.state_dict())
    defence.review([batch]), other.review([batch])
    assert torch.equal(other.mu, defence.mu)
