"""The bound's gradient is right, finite whatever the latents are, and makes classes narrow."""

from __future__ import annotations

import pytest
import torch

from attcem.defences import Bound
from tests.defences.bounds import COVS, FORMS, made
from tests.defences.draws import batch_of, example, gradients_are_right, loses_only, ready, survives_any_size


@pytest.mark.parametrize(("cov", "tokens"), FORMS)
@pytest.mark.parametrize("assign", ["gated", "slot"])
def test_gradient_is_right_at_latents_and_parameters(assign, cov, tokens):
    defence = ready(Bound(assign=assign, cov=cov, tokens=tokens, width=4, slots=2, iters=2), (3, 1, 2))
    assert gradients_are_right(defence, example(n=7, latent=(3, 1, 2)))


@pytest.mark.parametrize("cov", COVS)
def test_gradient_is_right_and_absent_for_a_sample_alone_in_its_class(cov):
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.double, requires_grad=True)
    y = torch.tensor([0, 0, 2, 2, 4])
    assert torch.autograd.gradcheck(lambda z: made(cov, 6).penalty(batch_of(z, y)), z)
    made(cov, 6).penalty(batch_of(z, y)).backward()
    assert z.grad[:4].abs().sum(1).min() > 0 and not z.grad[4].any()


@pytest.mark.parametrize("cov", COVS)
def test_no_class_with_two_samples_gives_a_zero_that_keeps_the_graph(cov):
    batch = example(n=4, classes=4)
    defence = made(cov, 4)
    penalty = defence.penalty(batch)
    penalty.backward()
    assert penalty.item() == 0 and not batch.z.grad.any() and "lost" not in batch.readings


@pytest.mark.parametrize("cov", COVS)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_penalty_that_is_not_finite_becomes_a_zero_that_keeps_the_graph_and_is_counted(cov, value):
    batch = example(dtype=torch.float32)
    z = batch.z.detach().clone()
    z[0, 0] = value
    z.requires_grad_()
    defence = made(cov, 3)
    broken = batch_of(z, batch.y)
    penalty = defence.penalty(broken)
    penalty.backward()
    assert penalty.isfinite() and z.grad.isfinite().all()
    assert (penalty.item(), z.grad.any().item(), "lost" in broken.readings) == (0, False, True)
    assert defence.penalty(batch) > 0 and "lost" not in batch.readings


@pytest.mark.parametrize("cov", COVS)
def test_a_sample_that_is_left_out_may_be_anything(cov):
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(1))
    z[4] = torch.nan
    z.requires_grad_()
    defence = made(cov, 6)
    batch = batch_of(z, torch.tensor([0, 0, 2, 2, 4]))
    penalty = defence.penalty(batch)
    penalty.backward()
    assert penalty > 0 and z.grad.isfinite().all() and "lost" not in batch.readings


@pytest.mark.parametrize("cov", COVS)
def test_latents_of_any_size_have_finite_penalties_and_gradients(cov):
    batch, lost = example(dtype=torch.float32), 0
    defence = made(cov, 3)
    for scale in [0.0, *(10.0**exponent for exponent in range(-44, 38, 2))]:
        z = (scale * batch.z.detach()).requires_grad_()
        scaled = batch_of(z, batch.y)
        penalty = defence.penalty(scaled)
        penalty.backward()
        lost += "lost" in scaled.readings
        assert penalty.isfinite() and penalty >= 0 and z.grad.isfinite().all(), scale
    assert lost > 0


@pytest.mark.parametrize("cov", COVS)
@pytest.mark.parametrize("assign", ["gated", "slot"])
def test_attention_over_latents_of_any_size_has_finite_penalties_and_gradients(assign, cov):
    assert survives_any_size(ready(Bound(assign=assign, cov=cov, slots=3), (4, 2, 2)))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("assign", ["gated", "slot"])
def test_attention_over_a_batch_that_is_not_finite_costs_only_its_own_penalty(assign, value):
    for cov in COVS:
        assert loses_only(ready(Bound(assign=assign, cov=cov, slots=3), (4, 2, 2)), value)
    assert loses_only(ready(Bound(assign=assign, tokens="spatial", memory=0.9), (4, 2, 2)), value)


@pytest.mark.parametrize("cov", COVS)
def test_following_the_gradient_makes_a_class_narrow(cov):
    batch = example()
    defence, z = made(cov, 3), batch.z.detach().clone().requires_grad_()
    optimiser = torch.optim.SGD([z], lr=2.0)
    for _ in range(200):
        optimiser.zero_grad()
        defence.penalty(batch_of(z, batch.y)).backward()
        optimiser.step()
    assert z.detach()[batch.y == 0].var(0).mean() < 0.5 * batch.z.detach()[batch.y == 0].var(0).mean()


def test_half_precision_latents_are_bounded_in_single():
    batch = example(dtype=torch.float32)
    found = made("gram", 3).penalty(batch_of(batch.z.bfloat16(), batch.y))
    assert found.dtype == torch.float32 and found.item() == pytest.approx(
        made("gram", 3).penalty(batch).item(), rel=0.02
    )
