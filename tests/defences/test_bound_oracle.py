"""The bound against slow loops over classes, samples, tokens and slots; what it depends on and what it refuses."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.defences import Bound, Noise, create_defence
from tests.defences.bounds import COVS, FORMS, made
from tests.defences.draws import EXACT, SIGMA, batch_of, batches, example, ready, shuffled
from tests.defences.slow import slow_bound


@pytest.mark.parametrize("cov", COVS)
@settings(max_examples=40)
@given(drawn=batches())
def test_equal_to_the_slow_loop(cov, drawn):
    batch, classes = drawn
    defence = made(cov, classes, batch.z.shape[1:])
    assert defence.penalty(batch).item() == pytest.approx(slow_bound(defence, batch), **EXACT)


@pytest.mark.parametrize(("cov", "tokens"), FORMS)
@pytest.mark.parametrize("assign", ["gated", "slot"])
@settings(max_examples=12)
@given(drawn=batches())
def test_equal_to_the_slow_loop_whoever_decides(assign, cov, tokens, drawn):
    batch, classes = drawn
    defence = Bound(assign=assign, cov=cov, tokens=tokens, width=5, slots=3, iters=2)
    defence = ready(defence, batch.z.shape[1:], classes)
    assert defence.penalty(batch).item() == pytest.approx(slow_bound(defence, batch), **EXACT)


@pytest.mark.parametrize("cov", COVS)
@settings(max_examples=15)
@given(drawn=batches(), seed=st.integers(0, 99))
def test_sample_order_and_class_names_do_not_matter(cov, drawn, seed):
    batch, classes = drawn
    defence = made(cov, classes)
    again = defence.penalty(shuffled(batch, classes, seed)[0])
    torch.testing.assert_close(again, defence.penalty(batch), atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("assign", ["gated", "slot"])
@settings(max_examples=20)
@given(drawn=batches(), form=st.sampled_from(FORMS), seed=st.integers(0, 99))
def test_sample_order_and_class_names_do_not_matter_to_attention(assign, drawn, form, seed):
    (batch, classes), (cov, tokens) = drawn, form
    defence = ready(Bound(assign=assign, cov=cov, tokens=tokens, width=5, slots=3), batch.z.shape[1:], classes)
    again = defence.penalty(shuffled(batch, classes, seed)[0]).item()
    assert again == pytest.approx(defence.penalty(batch).item(), **EXACT)


def test_the_whole_covariance_is_never_looser_than_its_parts():
    batch = example()
    diag, channel, gram = (made(cov, 3).nats(batch).item() for cov in COVS)
    assert gram < diag and gram < channel


@pytest.mark.parametrize("cov", COVS)
def test_grows_with_scale_against_the_noise_and_only_with_that(cov):
    batch = example()
    double = batch_of(2 * batch.z, batch.y)
    assert made(cov, 3).nats(double) > made(cov, 3).nats(batch)
    torch.testing.assert_close(made(cov, 3, sigma=2 * SIGMA).nats(double), made(cov, 3).nats(batch))


@pytest.mark.parametrize(("cov", "tokens"), FORMS)
@pytest.mark.parametrize("assign", ["gated", "slot"])
def test_attention_depends_only_on_the_scale_against_the_noise_either(assign, cov, tokens):
    batch = example(latent=(3, 2, 2))

    def nats(scale, sigma):
        defence = ready(Bound(assign=assign, cov=cov, tokens=tokens, slots=3), (3, 2, 2), sigma=sigma)
        return defence.nats(batch_of(scale * batch.z.detach(), batch.y)).item()

    first = nats(1e6, 1e6 * SIGMA)  # so large that what keeps a norm from dividing by zero plays no part
    assert nats(2e6, 2e6 * SIGMA) == pytest.approx(first, rel=1e-6)
    assert nats(2e6, 1e6 * SIGMA) > first + 1


def test_slots_start_at_the_same_place_in_training_so_that_a_memory_of_them_means_something():
    defence, batch = ready(Bound(assign="slot", slots=3), (2, 3, 3)).train(), example()
    assert defence.penalty(batch) == defence.penalty(batch)


def test_needs_noise_and_says_so():
    with pytest.raises(ValueError, match="add Noise"):
        made("diag", 3, sigma=0.0)
    chain = Noise(0.3) + Bound()
    chain.setup(latent=(4,), classes=3, sigma=chain.sigma)
    assert chain.sigma == 0.3


def test_wrong_choices_name_the_right_one():
    with pytest.raises(ValueError, match="did you mean 'channel'"):
        create_defence("bound", cov="channels")
    with pytest.raises(ValueError, match="did you mean 'gated'"):
        create_defence("bound", assign="gate")
    with pytest.raises(ValueError, match="did you mean 'spatial'"):
        create_defence("bound", tokens="spacial")
    with pytest.raises(ValueError, match='use cov="gram"'):
        made("channel", 3, latent=(512, 7, 7))
    for tokens in ("spatial", "project"):
        with pytest.raises(ValueError, match='tokens="flat" or "pooled"'):
            create_defence("bound", cov="gram", tokens=tokens)


def test_a_whole_latent_too_large_for_attention_names_the_other_tokens():
    for assign in ("gated", "slot"):
        with pytest.raises(ValueError, match='tokens="spatial" or tokens="pooled" or tokens="project"'):
            ready(Bound(assign=assign), (512, 7, 7))
    ready(Bound(assign="class"), (512, 7, 7))  # no attention, nothing to be too large
