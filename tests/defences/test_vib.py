"""The variational bottleneck: the noise that is learned is the noise that is released, and what it promises holds."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.defences import VIB, Noise, build_defence, create_defence
from attcem.defences.vib import gaussian_divergence
from tests.defences.draws import batch_of, batches, example, gradients_are_right, loses_only, ready, survives_any_size
from tests.maths.information import integrated_information


def made(latent=(4,), deviations=None, dtype=torch.double, **options):
    defence = VIB(**options)
    defence.setup(latent=latent, classes=3, sigma=0.0)
    if deviations is not None:
        defence.log_deviation.data = torch.tensor(deviations).log().view_as(defence.log_deviation)
    return defence.to(dtype)


@settings(max_examples=30)
@given(mean=st.floats(-9, 9), log_deviation=st.floats(-5, 3))
def test_the_divergence_is_that_of_two_normal_laws(mean, log_deviation):
    mean, log_deviation = (torch.tensor(value, dtype=torch.double) for value in (mean, log_deviation))
    law, prior = torch.distributions.Normal(mean, log_deviation.exp()), torch.distributions.Normal(0.0 * mean, 1.0)
    torch.testing.assert_close(
        gaussian_divergence(mean, log_deviation), torch.distributions.kl_divergence(law, prior), atol=1e-9, rtol=1e-9
    )


@settings(max_examples=30)
@given(drawn=batches())
def test_the_penalty_is_the_mean_over_samples_and_dimensions(drawn):
    batch, classes = drawn
    defence = ready(VIB(start=0.5), tuple(batch.z.shape[1:]), classes)
    total, own = 0.0, defence.log_deviation
    assert own.shape == ((batch.z.shape[1], 1, 1) if batch.z.ndim == 4 else batch.z.shape[1:])
    for sample in batch.z:
        for place in itertools.product(*map(range, sample.shape)):
            value, s = sample[place].item(), own[place if sample.ndim < 3 else place[0]].item()
            total += 0.5 * (value**2 + math.exp(2 * s) - 1 - 2 * s)
    assert defence.penalty(batch).item() == pytest.approx(total / batch.z.numel(), rel=1e-9, abs=1e-9)


@settings(max_examples=10)
@given(seed=st.integers(0, 999), deviation=st.sampled_from([0.3, 1.0]), size=st.sampled_from([0.3, 1.0, 2.0]))
def test_the_penalty_is_never_below_what_is_told_per_dimension(seed, deviation, size):
    z = size * torch.randn(6, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    defence = made((2,), [deviation, deviation])
    told = integrated_information(z, deviation)
    assert 2 * defence.penalty(batch_of(z, torch.zeros(6, dtype=torch.int64))).item() >= told - 1e-6


def test_each_channel_has_its_own_deviation_which_is_that_of_what_is_released():
    defence = made((3, 20, 20), [0.1, 0.5, 2.0], torch.float32)
    z = torch.full((100, 3, 20, 20), 7.0)
    first, second = defence.train().release(z) - 7, defence.eval().release(z) - 7
    for noise in (first, second):
        torch.testing.assert_close(noise.std((0, 2, 3)), torch.tensor([0.1, 0.5, 2.0]), rtol=0.02, atol=0)
    assert abs((first * second).mean().item()) < 0.02


@pytest.mark.parametrize(("latent", "shape"), [((8, 7, 7), (8, 1, 1)), ((32,), (32,)), ((5, 3), (5, 3))])
def test_one_deviation_for_each_channel_or_entry(latent, shape):
    assert made(latent).log_deviation.shape == shape


def test_sigma_is_the_smallest_deviation_as_it_is_now_and_nothing_before_setup():
    assert VIB(start=0.5).sigma == 0
    assert made((3,), start=0.5).sigma == pytest.approx(0.5)
    assert made((3,), [0.4, 0.2, 3.0]).sigma == pytest.approx(0.2)
    assert (Noise(0.15) + made((3,), [0.4, 0.2, 3.0])).sigma == pytest.approx(0.25)


@settings(max_examples=10)
@given(seed=st.integers(0, 999), other=st.sampled_from([0.4, 0.8, 3.0]))
def test_what_gets_through_is_never_more_than_sigma_lets_through(seed, other):
    z = torch.randn(5, 2, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    defence = made((2,), [0.4, other])
    through = integrated_information(z / torch.tensor([0.4, other], dtype=torch.double), 1.0)
    assert through <= integrated_information(z, defence.sigma) + 1e-4


def test_a_bound_beside_it_counts_on_the_noise_that_cannot_shrink_and_on_no_other():
    guard = Noise(0.3) + VIB() + create_defence("bound")
    guard.setup(latent=(4,), classes=3, sigma=guard.sigma)
    assert guard.links[-1].sigma_n == pytest.approx(0.3)
    with pytest.raises(ValueError, match="without noise"):
        build_defence({"vib": {}, "bound": {}})


def test_gradients():
    assert gradients_are_right(ready(VIB(), (2, 3, 3)), example())


def test_latents_of_any_size_leave_it_finite():
    assert survives_any_size(ready(VIB(), (4, 2, 2)))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
def test_a_batch_that_is_not_finite_costs_its_own_penalty_only(value):
    assert loses_only(ready(VIB(), (4, 2, 2)), value)


def test_alone_with_its_penalty_the_noise_grows_until_it_drowns_the_latent():
    defence, batch = made((2,), [0.1, 0.3]), example(latent=(2,))
    optimiser = torch.optim.SGD([batch.z, defence.log_deviation], lr=1.0)
    for _ in range(200):
        optimiser.zero_grad()
        defence.penalty(batch).backward()
        optimiser.step()
    torch.testing.assert_close(defence.log_deviation.exp(), torch.ones(2, dtype=torch.double), rtol=1e-3, atol=0)


def test_a_watched_step_tells_how_large_the_noise_has_become():
    defence = made((3,), [0.4, 0.2, 3.0])
    batch = example(latent=(3,))
    defence.penalty(batch)
    assert batch.readings == {}
    batch = replace(batch, watched=True)
    defence.penalty(batch)
    assert batch.readings["deviation"].item() == pytest.approx(1.2)
    assert batch.readings["least_deviation"].item() == pytest.approx(0.2)


@pytest.mark.parametrize("start", [0.0, -1.0, float("inf")])
def test_a_start_without_noise_is_refused(start):
    with pytest.raises(ValueError, match="start"):
        VIB(start=start)
