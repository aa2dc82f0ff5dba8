"""Local differential privacy: noise as large as promised, latents as near as promised, and the guarantee itself."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.configfile.chain import typed_chain
from attcem.defences import LocalDP, Noise, build_defence
from attcem.defences.local_dp import clipped, gaussian_delta
from attcem.maths.draws import laplace_like
from tests.maths.information import integrated_information

ORDERS = {"gaussian": 2, "laplace": 1}
SHAPES = st.sampled_from([(1,), (5,), (3, 2, 2)])


def latents(n, shape, seed, size=1.0):
    return size * torch.randn(n, *shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def lengths(z, order):
    sums = [sum(abs(v) ** order for v in row) for row in z.flatten(1).tolist()]
    return torch.tensor(sums, dtype=torch.double) ** (1 / order)


@pytest.mark.parametrize("mechanism", ORDERS)
@settings(max_examples=30)
@given(shape=SHAPES, size=st.sampled_from([1e-3, 1.0, 1e4]), limit=st.floats(0.01, 50), seed=st.integers(0, 999))
def test_clipping_shortens_what_is_too_long_and_leaves_the_rest_as_it_is(mechanism, shape, size, limit, seed):
    order, z = ORDERS[mechanism], latents(6, shape, seed, size)
    before, after = lengths(z, order), lengths(clipped(z, limit, order), order)
    torch.testing.assert_close(after, before.clamp_max(limit), rtol=1e-12, atol=0)
    short = before < limit
    assert torch.equal(clipped(z, limit, order)[short], z[short])
    torch.testing.assert_close(
        torch.nn.functional.normalize(clipped(z, limit, order).flatten(1)), torch.nn.functional.normalize(z.flatten(1))
    )


@settings(max_examples=50)
@given(size=st.sampled_from([0.1, 1.0, 10.0]), seed=st.integers(0, 999))
def test_clipping_never_moves_two_latents_apart(size, seed):
    z = latents(8, (3,), seed, size)
    assert (torch.pdist(clipped(z, 1.0, 2)) <= torch.pdist(z) + 1e-12).all()


@settings(max_examples=5)
@given(seed=st.integers(0, 999))
def test_clipped_latents_tell_no_more_through_the_same_noise(seed):
    z = latents(6, (2,), seed, 1.5)
    free, bounded = (integrated_information(points, 0.4) for points in (z, clipped(z, 1.0, 2)))
    assert bounded <= free + 1e-6


@pytest.mark.parametrize("mechanism", ORDERS)
@pytest.mark.parametrize("value", [0.0, 1e-40, 1e30])
def test_the_gradient_is_finite_for_latents_of_any_size(mechanism, value):
    z = torch.full((2, 4), value, requires_grad=True)
    released = LocalDP(mechanism=mechanism).release(z)
    released.sum().backward()
    assert released.isfinite().all() and z.grad.isfinite().all()


def test_the_scale_is_that_of_the_formula():
    assert LocalDP(0.5, clip=3.0, delta=1e-5).scale == pytest.approx(6 * math.sqrt(2 * math.log(125_000)) / 0.5)
    assert LocalDP(0.5, "laplace", clip=3.0).scale == pytest.approx(12.0)


def test_the_published_form_has_sensitivity_one_and_does_not_clip():
    gaussian, laplace = LocalDP(4.0, clip=None), LocalDP(4.0, "laplace", clip=None)
    assert gaussian.scale == pytest.approx(math.sqrt(2 * math.log(12_500)) / 4) and laplace.scale == 0.25
    z = torch.full((4, 1000), 50.0)
    assert gaussian.release(z).mean().item() == pytest.approx(50, abs=0.2)


def test_gaussian_noise_has_the_deviation_that_sigma_says_and_is_fresh():
    defence = LocalDP(6.0, clip=0.5)
    first, second = (defence.release(torch.zeros(4, 50_000)) for _ in range(2))
    assert defence.sigma == defence.scale
    assert first.std().item() == pytest.approx(defence.sigma, rel=0.02)
    assert abs((first * second).mean().item()) < 0.01 * defence.sigma**2
    assert (first.abs() > 2 * defence.sigma).double().mean().item() == pytest.approx(0.0455, rel=0.05)


def test_laplace_noise_has_the_tails_of_its_law_and_is_fresh():
    defence = LocalDP(4.0, "laplace", clip=0.5)
    first, second = (defence.release(torch.zeros(4, 50_000)) for _ in range(2))
    assert first.abs().mean().item() == pytest.approx(0.25, rel=0.02)
    assert first.std().item() == pytest.approx(0.25 * 2**0.5, rel=0.02)
    assert abs((first * second).mean().item()) < 0.002
    for times in (1, 3):
        assert (first.abs() > 0.25 * times).double().mean().item() == pytest.approx(math.exp(-times), rel=0.05)
    assert laplace_like(torch.zeros(3, 4, dtype=torch.double)).dtype == torch.double


@settings(max_examples=20)
@given(epsilon=st.floats(0.1, 20), seed=st.integers(0, 999))
def test_laplace_never_makes_one_picture_likelier_than_another_by_more_than_epsilon(epsilon, seed):
    defence = LocalDP(epsilon, "laplace", clip=2.0)
    z = latents(2, (5,), seed, 10.0)
    mine, other = clipped(z, 2.0, 1)
    seen = mine + defence.scale * laplace_like(latents(1000, (5,), seed))
    ratio = ((seen - other).abs().sum(1) - (seen - mine).abs().sum(1)) / defence.scale
    assert ratio.max() <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize(("ratio", "epsilon"), [(0.1, 0.3), (0.5, 1.0), (2.0, 0.5), (3.0, 8.0)])
def test_the_exact_delta_is_the_excess_of_one_density_over_the_other(ratio, epsilon):
    t = torch.linspace(-40, 40, 400_001, dtype=torch.double)
    near, far = (torch.exp(-((t - m) ** 2) / 2) / math.sqrt(2 * math.pi) for m in (ratio, 0.0))
    excess = (near - math.exp(epsilon) * far).clamp_min(0).sum().item() * (t[1] - t[0]).item()
    assert gaussian_delta(ratio, epsilon, 1.0) == pytest.approx(excess, rel=1e-4, abs=1e-12)


@given(epsilon=st.floats(0.01, 0.999), delta=st.floats(1e-8, 0.1), clip=st.floats(0.01, 100))
def test_below_epsilon_one_the_formula_keeps_its_promise_and_nothing_needs_saying(epsilon, delta, clip):
    defence = LocalDP(epsilon, delta=delta, clip=clip)
    assert gaussian_delta(2 * clip, epsilon, defence.scale) <= delta
    assert defence.flags == [] and LocalDP(50 * epsilon, "laplace", clip=clip).flags == []


def test_from_epsilon_one_on_a_flag_says_which_delta_is_given():
    for epsilon in (1.0, 8.0, 1000.0):
        (flag,) = LocalDP(epsilon).flags
        exact = gaussian_delta(2.0, epsilon, LocalDP(epsilon).scale)
        assert "epsilon below 1" in flag and f"delta={exact:.3g} " in flag
    assert "delta=0.0133 (exact); 0.0001 was asked for" in LocalDP(20.0).flags[0]


@pytest.mark.parametrize("mechanism", ORDERS)
def test_without_clipping_a_flag_says_that_nothing_is_guaranteed(mechanism):
    (flag,) = LocalDP(0.5, mechanism, clip=None).flags
    assert "no guarantee" in flag


def test_only_gaussian_noise_counts_as_gaussian_noise():
    assert LocalDP(2.0, "laplace").sigma == 0
    assert (Noise(0.3) + LocalDP(2.0, "laplace")).sigma == pytest.approx(0.3)
    assert LocalDP(2.0).sigma == pytest.approx(2 * math.sqrt(2 * math.log(12_500)) / 2)


def test_a_configuration_can_ask_for_no_clipping():
    chain = typed_chain([{"local_dp": {"epsilon": 2, "clip": None, "mechanism": "laplace"}}])
    (unclipped,), (clipped,) = (build_defence(typed_chain(c)).links for c in (chain, [{"local_dp": {}}]))
    assert unclipped.clip is None and clipped.clip == 1.0


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"clip": 0.0}, "clip"),
        ({"mechanism": "gauss"}, "did you mean 'gaussian'"),
    ],
)
def test_what_makes_no_sense_is_refused(options, fault):
    with pytest.raises(ValueError, match=fault):
        LocalDP(**options)
