"""NoPeek: the distance correlation of a batch, whatever happens to the latents."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.defences import NoPeek
from attcem.maths.dcor import distance_correlation
from attcem.types import Batch


def example(n=8, latent=(2, 3, 3), seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 1, 4, 4, generator=generator, dtype=dtype)
    z = torch.randn(n, *latent, generator=generator, dtype=dtype)
    return Batch(x, torch.arange(n) % 3, z.requires_grad_())


@pytest.mark.parametrize("unbiased", [False, True])
@settings(max_examples=20)
@given(n=st.integers(4, 12), latent=st.sampled_from([(1,), (5,), (2, 3, 3)]), seed=st.integers(0, 99))
def test_it_is_the_distance_correlation_of_pictures_and_latents(unbiased, n, latent, seed):
    batch = example(n, latent, seed, torch.double)
    expected = distance_correlation(batch.x.reshape(n, -1), batch.z.reshape(n, -1), unbiased=unbiased)
    torch.testing.assert_close(NoPeek(unbiased=unbiased).penalty(batch), expected)


def test_following_its_gradient_hides_which_pictures_look_alike():
    batch = example(32, (4,), dtype=torch.double)
    z = batch.x.flatten(1)[:, :4].clone().requires_grad_()
    before = NoPeek(unbiased=True).penalty(Batch(batch.x, batch.y, z)).item()
    optimiser = torch.optim.Adam([z], lr=0.02)
    for _ in range(100):
        optimiser.zero_grad()
        after = NoPeek(unbiased=True).penalty(Batch(batch.x, batch.y, z))
        after.backward()
        optimiser.step()
    assert before > 0.1 and after.item() < 0.2 * before


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e30])
@pytest.mark.parametrize("unbiased", [False, True])
def test_a_batch_that_is_not_finite_costs_its_own_penalty_only(value, unbiased):
    defence, start = NoPeek(unbiased=unbiased), example()
    z = start.z.detach().clone()
    z[0, 0] = value
    z.requires_grad_()
    broken = Batch(start.x, start.y, z)
    penalty = defence.penalty(broken)
    penalty.backward()
    assert penalty == 0 and torch.equal(z.grad, torch.zeros_like(z)) and "lost" in broken.readings
    assert defence.penalty(start) != 0 and "lost" not in start.readings


@pytest.mark.parametrize("unbiased", [False, True])
def test_latents_of_any_size_have_finite_penalties_and_gradients(unbiased):
    defence, start = NoPeek(unbiased=unbiased), example()
    for exponent in range(-44, 38, 3):
        z = (10.0**exponent * start.z.detach()).requires_grad_()
        penalty = defence.penalty(Batch(start.x, start.y, z))
        penalty.backward()
        assert penalty.isfinite() and z.grad.isfinite().all()


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_batch_of_few_is_no_accident(n, unbiased):
    batch = example(n)
    penalty = NoPeek(unbiased=unbiased).penalty(batch)
    penalty.backward()
    assert penalty.isfinite() and batch.z.grad.isfinite().all()
    assert penalty == 0 if unbiased or n == 1 else penalty > 0


def test_half_precision_is_widened():
    batch = example(dtype=torch.float32)
    coarse = Batch(batch.x, batch.y, batch.z.detach().bfloat16().requires_grad_())
    torch.testing.assert_close(NoPeek().penalty(coarse), NoPeek().penalty(batch), rtol=0.02, atol=0.0)


def test_nothing_that_is_released_changes():
    z = torch.randn(3, 4)
    assert NoPeek().release(z) is z and NoPeek().sigma == 0 and list(NoPeek().parameters()) == []
