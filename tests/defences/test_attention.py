"""What holds for every penalty that attends: who is called what, how large latents are, and where it has a gradient."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.defences import Gated, Hybrid, Slot
from tests.defences.draws import (
    EXACT,
    TOKENS,
    batch_of,
    batches,
    example,
    gradients_are_right,
    loses_only,
    ready,
    shuffled,
    survives_any_size,
)

ALONE = {
    **{f"gated-{form}": partial(Gated, form=form) for form in ("hinge", "gates")},
    **{f"slot-{form}": partial(Slot, form=form, shut_off=False, slots=3) for form in ("hinge", "mixture")},
}
ALL = ALONE | {f"hybrid-{deep}": partial(Hybrid, deep=deep) for deep in ("slot", "bound")}

every_one = pytest.mark.parametrize("make", ALL.values(), ids=ALL)
every_one_alone = pytest.mark.parametrize("make", ALONE.values(), ids=ALONE)


@every_one_alone
@settings(max_examples=15)
@given(drawn=batches(), tokens=st.sampled_from(TOKENS), seed=st.integers(0, 99))
def test_sample_order_and_class_names_do_not_matter(make, drawn, tokens, seed):
    batch, classes = drawn
    defence = ready(make(tokens=tokens, width=6), batch.z.shape[1:], classes)
    again = defence.penalty(shuffled(batch, classes, seed)[0]).item()
    assert again == pytest.approx(defence.penalty(batch).item(), **EXACT)


@every_one_alone
def test_blind_to_the_scale_that_leaks(make):
    defence, batch = ready(make(), (4, 2, 2)), example(latent=(4, 2, 2))
    small, large = (defence.penalty(batch_of(scale * batch.z.detach(), batch.y)).item() for scale in (1e3, 2e3))
    assert large == pytest.approx(small, rel=1e-6) and small > 0


@pytest.mark.parametrize("open_gates", [False, True])
@every_one_alone
def test_gradient_is_right_at_latents_and_parameters(make, open_gates):
    defence = ready(make(tokens="project", width=4, open_gates=open_gates), (3, 1, 2))
    assert gradients_are_right(defence, example(n=7, latent=(3, 1, 2)))


@every_one_alone
def test_a_class_of_one_sample_is_left_out_and_feels_nothing(make):
    z = torch.randn(5, 6, generator=torch.Generator().manual_seed(1), dtype=torch.double, requires_grad=True)
    defence = ready(make(), (6,), 6)
    defence.penalty(batch_of(z, torch.tensor([0, 0, 2, 2, 4]))).backward()
    assert z.grad[:4].abs().sum(1).min() > 0 and not z.grad[4].any()
    batch = batch_of(z, torch.arange(5))
    alone = defence.penalty(batch)
    alone.backward()
    assert alone.item() == 0 and alone.requires_grad and "lost" not in batch.readings


@every_one
def test_latents_of_any_size_have_finite_penalties_and_gradients(make):
    assert survives_any_size(ready(make(), (4, 2, 2)))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@every_one
def test_a_batch_that_is_not_finite_costs_only_its_own_penalty_and_is_counted(make, value):
    assert loses_only(ready(make(), (4, 2, 2)), value)
