"""Thresholds against their definitions."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.maths.gates import NEED_NOISE, THRESHOLDS, Circumstances
from tests.defences.slow import slow_threshold


@pytest.mark.parametrize("kind", THRESHOLDS)
@settings(max_examples=50)
@given(
    variances=st.lists(st.floats(0, 100), min_size=1, max_size=9),
    sigma=st.sampled_from([1e-6, 0.025, 0.3, 2.0]),
    tau=st.sampled_from([0.0, 0.125, 1.0]),
    gamma=st.sampled_from([1e-6, 1e-2]),
    progress=st.floats(0, 1),
)
def test_equal_to_the_definition(kind, variances, sigma, tau, gamma, progress):
    var = torch.tensor(variances, dtype=torch.double).reshape(1, -1)
    found = float(THRESHOLDS[kind](var, Circumstances(sigma, tau, gamma, progress)))
    assert found == pytest.approx(slow_threshold(kind, variances, sigma, tau, gamma, progress), rel=1e-12)


def at(kind, progress=0.0, sigma=0.1, variances=(0.2, 0.1, 0.4)):
    return float(THRESHOLDS[kind](torch.tensor(variances), Circumstances(sigma, 0.125, 1e-6, progress)))


def test_numbers_worked_out_by_hand():
    assert at("noise") == pytest.approx(0.125 * 0.01 + 1e-6)
    assert at("constant") == 0.05 and at("constant", sigma=0.0) == 0.05
    assert at("quantile", sigma=0.0) == pytest.approx(0.2 + 1e-6)


def test_the_schedule_falls_from_one_to_what_the_noise_hides():
    steps = [at("schedule", progress) for progress in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert steps[0] == 1 and steps[-1] == pytest.approx(at("noise"))
    ratios = [later / sooner for sooner, later in pairwise(steps)]
    assert ratios == pytest.approx([math.exp(math.log(at("noise")) / 4)] * 4)


@pytest.mark.parametrize("kind", THRESHOLDS)
def test_those_that_need_noise_are_those_that_refuse_to_do_without(kind):
    if kind in NEED_NOISE:
        with pytest.raises(ValueError, match="every class would look too wide"):
            at(kind, 0.5, sigma=0.0)
    else:
        assert at(kind, 0.5, sigma=0.0) > 0


def test_a_quantile_does_not_pull_at_the_variances_it_is_taken_from():
    var = torch.rand(5, requires_grad=True)
    assert not THRESHOLDS["quantile"](var, Circumstances(0.1, 0.1, 1e-6)).requires_grad
