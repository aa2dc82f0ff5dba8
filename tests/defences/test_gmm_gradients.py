"""The clustered penalty's gradient is right, finite whatever the latents are, and makes clusters narrow."""

from __future__ import annotations

import pytest
import torch

from tests.defences.clustered import STATE, every_form, every_token, example, fitted, made
from tests.defences.draws import batch_of


@every_form
@every_token
def test_gradient_is_right_and_absent_for_a_sample_alone_in_its_class(form, tokens):
    z, y = example(7).z, torch.tensor([0, 0, 2, 2, 2, 0, 1])
    defence = fitted(form=form, tokens=tokens)
    assert torch.autograd.gradcheck(lambda z: defence.penalty(batch_of(z, y)), z)
    defence.penalty(batch_of(z, y)).backward()
    assert z.grad[:6].flatten(1).abs().sum(1).min() > 0 and not z.grad[6].any()


@every_form
def test_without_clusters_or_without_pairs_a_zero_keeps_the_graph(form):
    for defence, batch in [(made(form=form), example()), (fitted(form=form), example(3))]:
        penalty = defence.penalty(batch)
        penalty.backward()
        assert penalty.item() == 0 and not batch.z.grad.any() and "lost" not in batch.readings


@every_form
def test_classes_without_clusters_are_left_out(form):
    batch = example(30)
    defence = made(form=form, fit=[batch_of(batch.z[batch.y < 2], batch.y[batch.y < 2])])
    defence.penalty(batch).backward()
    assert batch.z.grad[batch.y < 2].any() and not batch.z.grad[batch.y == 2].any()


@every_form
@every_token
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e30])
def test_a_penalty_that_is_not_finite_becomes_a_zero_that_keeps_the_graph_and_is_counted(form, tokens, value):
    batch = example(dtype=torch.float32)
    z = batch.z.detach().clone()
    z[0, 0] = value
    z.requires_grad_()
    defence = fitted(torch.float32, form=form, tokens=tokens)
    broken = batch_of(z, batch.y)
    penalty = defence.penalty(broken)
    penalty.backward()
    assert (penalty.item(), z.grad.isfinite().all(), z.grad.any(), "lost" in broken.readings) == (0, True, False, True)
    assert defence.penalty(batch) > 0 and "lost" not in batch.readings


@every_form
@every_token
def test_latents_of_any_size_have_finite_penalties_and_gradients(form, tokens):
    batch, lost = example(dtype=torch.float32), 0
    once = fitted(torch.float32, form=form, tokens=tokens)
    for scale in [0.0, *(10.0**exponent for exponent in range(-44, 38, 2))]:
        z = (scale * batch.z.detach()).requires_grad_()
        again = made(form=form, tokens=tokens, fit=[batch_of(z, batch.y)], dtype=torch.float32)
        assert all(getattr(again, name).isfinite().all() for name in STATE), scale
        for defence in (once, again):
            scaled = batch_of(z, batch.y)
            penalty = defence.penalty(scaled)
            penalty.backward()
            lost += "lost" in scaled.readings
            assert penalty.isfinite() and penalty >= 0 and z.grad.isfinite().all(), scale
    assert lost > 0


@every_form
def test_following_the_gradient_makes_clusters_narrow(form):
    batch, defence = example(30), made(form=form, fit=[example(30)])
    z = batch.z.detach().clone().requires_grad_()
    optimiser = torch.optim.SGD([z], lr=3.0)
    for _ in range(50):
        optimiser.zero_grad()
        defence.penalty(batch_of(z, batch.y)).backward()
        optimiser.step()
    after = made(form="variance", fit=[batch_of(z.detach(), batch.y)])
    assert after.var.mean() < 0.5 * made(form="variance", fit=[batch]).var.mean()


def test_half_precision_latents_are_penalised_in_single():
    batch, defence = example(dtype=torch.float32), fitted(torch.float32)
    found = defence.penalty(batch_of(batch.z.bfloat16(), batch.y))
    assert found.dtype == torch.float32 and found.item() == pytest.approx(defence.penalty(batch).item(), rel=0.02)
