"""From nats to what an attacker can reach: the least MSE, and how often the right image is found."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.metrics.bounds import fano_reidentification, fano_success, filled_floor, mse_floor, relative_floor


@settings(max_examples=50)
@given(
    rate=st.floats(0, 60),
    spread=st.sampled_from([0.0, 1.0, 4.0]),
    groups=st.integers(1, 3),
    seed=st.integers(0, 9999),
)
def test_water_finds_its_level(rate, spread, groups, seed):
    generator = torch.Generator().manual_seed(seed)
    entropies = spread * torch.randn(groups, 7, generator=generator, dtype=torch.double)
    share = torch.rand(groups, generator=generator, dtype=torch.double).softmax(0)
    power = (2 * entropies).exp() / (2 * math.pi * math.e)
    low, high = 1e-30, power.max().item()
    for _ in range(300):
        level = math.sqrt(low * high)
        spent = (share.unsqueeze(1) * 0.5 * (power / level).log().clamp_min(0)).sum().item()
        low, high = (level, high) if spent > rate else (low, level)
    slow = (share.unsqueeze(1) * power.clamp_max(high)).sum().item() / 7
    floor = filled_floor(rate, entropies, share)
    assert floor == pytest.approx(slow, rel=1e-6)
    if groups == 1:
        assert floor >= mse_floor(rate, entropies.sum().item(), 7) * (1 - 1e-9)


def test_a_group_without_images_does_not_count():
    entropies = torch.tensor([[0.0, 1.0], [50.0, 50.0]])
    alone = filled_floor(1.0, entropies[:1], torch.ones(1))
    assert filled_floor(1.0, entropies, torch.tensor([1.0, 0.0])) == pytest.approx(alone)


def test_relative_floor_is_the_ratio_of_two_floors():
    assert relative_floor(10.0, 30.0, 20) == pytest.approx(math.exp(2))
    assert relative_floor(10.0, 30.0, 20) == pytest.approx(mse_floor(10.0, 7.0, 20) / mse_floor(30.0, 7.0, 20))


@pytest.mark.parametrize("candidates", [2, 16, 64])
@pytest.mark.parametrize("sigma", [1.5, 4.0])
def test_nobody_finds_the_image_more_often_than_fano_allows(candidates, sigma):
    generator, d, trials, queries = torch.Generator().manual_seed(0), 4, 4000, 2
    book = torch.randn(trials, candidates, d, generator=generator)
    sent = book[:, 0] + sigma / math.sqrt(queries) * torch.randn(trials, d, generator=generator)
    nearest = (book - sent.unsqueeze(1)).square().sum(-1).argmin(1)
    success = (nearest == 0).float().mean().item()
    nats = d * 0.5 * math.log(1 + 1 / sigma**2)
    allowed = fano_success(queries * nats, candidates)
    assert 1.2 / candidates < success <= allowed + 0.02
    assert allowed <= min(1.0, (queries * nats + math.log(2)) / math.log(candidates))


def test_fano_is_exact_at_its_ends_and_says_where_it_is_vacuous():
    assert fano_success(0.0, 50) == pytest.approx(1 / 50)
    assert fano_success(math.log(50), 50) == 1.0
    table = fano_reidentification(3.0, [10, 10**6], [1, 10])
    assert table["candidates"] == [10, 10, 10**6, 10**6] and table["queries"] == [1, 10, 1, 10]
    assert table["vacuous"] == [True, True, False, True]
    assert 1e-6 < table["success"][2] < 1
    with pytest.raises(ValueError, match="2 or more"):
        fano_success(1.0, 1)
