"""All bounds together: none crosses what is known of a channel, or what a fitted attack reaches."""

from __future__ import annotations

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.metrics.bounds import bounds
from attcem.metrics.fisher import fisher_bound
from attcem.metrics.rate_bounds import rate_bounds
from tests.metrics.channel import Channel, double, isotropic, labels


def numbers(tree):
    if isinstance(tree, dict | list):
        return [leaf for inner in (tree.values() if isinstance(tree, dict) else tree) for leaf in numbers(inner)]
    return [tree] if isinstance(tree, int | float) and not isinstance(tree, bool) else []


@settings(max_examples=8)
@given(
    seed=st.integers(0, 9999),
    d=st.sampled_from([4, 9, 12]),
    wide=st.integers(1, 12),
    sigma=st.sampled_from([0.02, 0.1, 0.5]),
    spread=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_no_bound_crosses_what_a_linear_gaussian_channel_is_known_to_tell(seed, d, wide, sigma, spread):
    channel = Channel(seed, d, wide, sigma, spread)
    found = channel.bounds(jacobians=200)
    assert found["rate_nats"] >= channel.information - 4 * found["rate_stderr"] - 0.01
    assert found["rate"]["one/gram"] <= 1.1 * channel.information + 0.1
    for floor in (found["mse_floor_estimate"], found["mse_floor_even_estimate"], found["fisher"]["mse"]):
        assert 0 <= floor <= 1.05 * channel.least_mse


def test_floors_are_tight_where_every_direction_is_alike():
    channel = isotropic()
    found = channel.bounds(jacobians=500)
    assert found["rate_nats"] == pytest.approx(channel.information, rel=0.03)
    for floor in (found["mse_floor_estimate"], found["mse_floor_even_estimate"], found["fisher"]["mse"]):
        assert floor == pytest.approx(channel.least_mse, rel=0.05)


def test_a_floor_that_fills_the_axes_is_useful_where_the_even_one_is_not():
    channel = Channel(3, d=16, wide=16, sigma=0.1, spread=2.0)
    found = channel.bounds(jacobians=100)
    assert found["mse_floor_even_estimate"] < channel.least_mse / 3
    assert found["mse_floor_estimate"] > channel.least_mse / 2
    assert found["fisher"]["mse"] > channel.least_mse / 2


def test_a_fitted_attack_stays_above_the_floors():
    channel = Channel(5, d=16, wide=12, sigma=0.05)
    found, (train, test) = channel.bounds(jacobians=200), channel.images().flatten(1).chunk(2)
    sent = [x @ channel.a.T for x in (train, test)]
    sent = [z + channel.sigma * torch.randn(z.shape, dtype=double) for z in sent]
    inputs = [torch.cat([z, torch.ones_like(z[:, :1])], 1) for z in sent]
    mse = (inputs[1] @ torch.linalg.lstsq(inputs[0], train).solution - test).square().mean().item()
    assert mse == pytest.approx(channel.least_mse, rel=0.05)
    assert mse >= found["mse_floor_estimate"] > 0
    assert mse >= found["fisher"]["mse"] > 0


def test_on_real_pictures_the_best_linear_attack_stays_above_the_floors(fashion):
    x, sigma = fashion.test[:1200].pixels(), 0.5
    found = bounds(x, fashion.test.y[:1200], 10, sigma, x, encode=lambda x: x, jacobians=300)
    rows = (x - x.mean(0)).flatten(1).double()
    cov = rows.T @ rows / len(rows)
    gain = torch.linalg.solve(cov + sigma**2 * torch.eye(784, dtype=double), cov)
    mse = ((rows + sigma * torch.randn(rows.shape, dtype=double)) @ gain - rows).square().mean().item()
    assert 0 < found["mse_floor_estimate"] < mse
    assert 0 < found["fisher"]["mse"] < mse
    assert found["rate_form"].endswith("gram")
    assert found["rate"]["learned/gram"] < found["rate"]["one/gram"] < found["rate"]["one/diag"]


def test_pixels_that_few_images_use_do_not_raise_the_floor_above_what_images_differ_by(small):
    x = small.test[:40].pixels()
    found = bounds(x, small.test.y[:40], 10, 0.5, x, encode=lambda x: x)
    for floor in (found["mse_floor_estimate"], found["mse_floor_even_estimate"], found["fisher"]["mse"]):
        assert 0 < floor < 2 * x.var(0).mean()


def test_a_constant_encoder_tells_nothing():
    x = torch.rand(400, 1, 4, 4)
    found = bounds(torch.full((400, 2), 0.3), labels(400), 3, 0.1, x, encode=lambda x: torch.full((len(x), 2), 0.3))
    assert found["rate_nats"] < 1e-6 and found["fisher"]["trace"] == 0
    assert found["fano"]["success"] == pytest.approx([1 / n for n in found["fano"]["candidates"]], rel=1e-3)
    assert found["mse_floor_estimate"] == pytest.approx(1 / 12, rel=0.15)
    assert found["fisher"]["mse"] == pytest.approx(1 / 12, rel=0.15)


@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan")])
def test_without_noise_no_number_is_given(sigma):
    x = torch.rand(20, 1, 4, 4)
    found = bounds(x, labels(20), 3, sigma, x, encode=lambda x: x, not_counted=["dropout"])
    assert found["rate"] is None and found["why"] == "no noise: no bound" and found["not_counted"] == ["dropout"]
    assert len(numbers(found)) == 1  # sigma itself
    with pytest.raises(ValueError, match="add Noise"):
        rate_bounds(x, labels(20), 3, sigma)
    with pytest.raises(ValueError, match="add Noise"):
        fisher_bound(lambda x: x, x, sigma)


def test_the_same_seed_gives_the_same_plain_numbers():
    first, again, other = (Channel(7).bounds(seed=seed, jacobians=50) for seed in (0, 0, 1))
    assert json.dumps(first, allow_nan=False) == json.dumps(again, allow_nan=False)
    assert first["rate_nats"] != other["rate_nats"] and first["fisher"]["trace"] != other["fisher"]["trace"]
