"""Bounds on the rate: held-out images judge them, classes cost their entropy, and their error is honest."""

from __future__ import annotations

import math

import pytest
import torch

from attcem.maths import gram_rate
from attcem.metrics.rate_bounds import left_out, rate_bounds
from tests.metrics.channel import Channel, double, isotropic, labels


def test_fewer_images_than_dimensions_loosen_the_rate_and_do_not_break_it():
    channel = Channel(1, d=100, wide=300, sigma=0.1, spread=0.5, n=120)
    z = channel.encode(channel.images())
    rows = (z - z.mean(0)) / math.sqrt(len(z))
    fitted_and_judged_alike = gram_rate(rows[:90], torch.zeros(90, dtype=torch.int64), 1, channel.sigma).item()
    assert fitted_and_judged_alike < channel.information - 5
    for nats in rate_bounds(z, labels(120), 3, channel.sigma).values():
        assert nats >= channel.information - 2 * nats.stderr


def test_well_separated_classes_cost_their_entropy_and_what_each_tells():
    channel = Channel(2, n=8000)
    y = torch.randint(0, 4, (8000,), generator=torch.Generator().manual_seed(0))
    z = channel.encode(channel.images()) + 5 * torch.randn(4, 6, dtype=double)[y]
    found = rate_bounds(z, y, 4, channel.sigma)
    truth = channel.information + math.log(4)
    assert found["class/gram"] == pytest.approx(truth, rel=0.05)
    assert found["learned/gram"] == pytest.approx(truth, rel=0.08)
    assert found["one/gram"] > 1.2 * truth
    assert min(found.values()) >= truth - 4 * found["class/gram"].stderr


def test_channels_are_turned_alike_at_every_position():
    generator = torch.Generator().manual_seed(0)
    mix = torch.randn(4, 4, generator=generator, dtype=double)
    z = (torch.randn(4000, 9, 4, generator=generator, dtype=double) @ mix.T).transpose(1, 2).reshape(4000, 4, 3, 3)
    truth = 9 * 0.5 * torch.logdet(torch.eye(4) + mix @ mix.T / 0.3**2).item()
    found = rate_bounds(z, labels(4000), 3, 0.3)
    assert found["one/channel"] == pytest.approx(truth, rel=0.02)
    assert found["one/diag"] > 1.1 * truth


def test_the_standard_error_is_that_of_a_repeated_experiment():
    channels = [isotropic(seed, n=400) for seed in range(20)]
    found = [rate_bounds(channel.images(), labels(400), 3, channel.sigma) for channel in channels]
    spread = torch.tensor([float(nats["one/diag"]) for nats in found]).std().item()
    claimed = sum(nats["one/diag"].stderr for nats in found) / len(found)
    assert 0.6 < spread / claimed < 1.6


def test_what_is_too_wide_is_left_out_with_a_reason():
    z = torch.randn(40, 4100, 1, 1)
    assert set(rate_bounds(z, labels(40), 3, 1.0)) == {"one/diag", "class/diag", "learned/diag"}
    assert left_out((4100, 1, 1)).keys() == {"channel", "gram"}
    assert "4100 dimensions" in left_out((41, 10, 10))["gram"]
    assert left_out((6,)).keys() == {"channel"} and not left_out((8, 8, 8))
    assert left_out((1, 4100)).keys() == {"channel", "gram"}


@pytest.mark.parametrize("classes", [1, 60])
@pytest.mark.parametrize("latent", [(3,), (1,), (2, 3), (2, 2, 2)])
def test_any_shape_any_number_of_classes(latent, classes):
    z = torch.randn(30, *latent)
    found = rate_bounds(z, torch.randint(0, classes, (30,)), classes, 0.5)
    truth = math.prod(latent) * 0.5 * math.log(1 + 1 / 0.25)
    assert all(math.isfinite(nats) and nats > 0.4 * truth for nats in found.values())


def test_too_few_or_broken_samples_are_refused():
    with pytest.raises(ValueError, match="at least 8"):
        rate_bounds(torch.randn(7, 3), labels(7), 3, 1.0)
    with pytest.raises(ValueError, match="not finite"):
        rate_bounds(torch.full((9, 3), torch.nan), labels(9), 3, 1.0)
