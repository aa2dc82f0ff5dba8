"""Dropout as a release: on in evaluation, too, fresh every time, and right on average."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.defences import Dropout


@settings(max_examples=20)
@given(rate=st.sampled_from([0.0, 0.1, 0.5, 0.9]), shape=st.sampled_from([(4,), (3, 2, 5)]), training=st.booleans())
def test_every_entry_is_held_back_or_scaled_and_nothing_else(rate, shape, training):
    z = torch.rand(7, *shape, dtype=torch.double) + 0.5
    released = Dropout(rate).train(training).release(z)
    kept = released != 0
    torch.testing.assert_close(released[kept], z[kept] / (1 - rate))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8])
def test_as_many_are_held_back_as_the_rate_says_and_the_mean_is_kept(rate, training):
    released = Dropout(rate).train(training).release(torch.full((4, 50_000), 3.0))
    assert (released == 0).float().mean().item() == pytest.approx(rate, abs=0.005)
    assert released.mean().item() == pytest.approx(3.0, rel=0.02)


def test_entries_are_drawn_by_themselves_and_afresh():
    z, defence = torch.ones(2000, 8, 2, 2), Dropout(0.5).eval()
    first, second = ((defence.release(z) != 0).float().flatten(1) - 0.5 for _ in range(2))
    pairs = first.T @ first / len(z)
    assert (pairs - torch.diag(pairs.diagonal())).abs().max() < 0.03  # no channel or position goes as a whole
    assert abs((first * second).mean().item()) < 0.005


def test_the_gradient_passes_through_what_is_released():
    z = torch.rand(3, 50, requires_grad=True)
    released = Dropout(0.25).release(z)
    released.sum().backward()
    torch.testing.assert_close(z.grad, (released != 0) / 0.75)


@pytest.mark.parametrize("rate", [-0.1, 1.0, float("nan")])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(ValueError, match="below 1"):
        Dropout(rate)
