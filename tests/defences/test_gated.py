"""Gated attention pooling against slow loops, and what it is blind to."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.defences import Gated, create_defence
from tests.defences.draws import EXACT, THRESHOLDS, TOKENS, batches, example, own, ready
from tests.defences.slow import slow_gated, slow_total

FORMS = ["hinge", "gates"]


@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=25)
@given(drawn=batches(), threshold=st.sampled_from(THRESHOLDS), open_gates=st.booleans())
def test_equal_to_the_slow_loop(form, tokens, drawn, threshold, open_gates):
    batch, classes = drawn
    defence = Gated(form=form, tokens=tokens, width=5, threshold=threshold, open_gates=open_gates)
    defence = ready(defence, batch.z.shape[1:], classes)
    slow = 0.1 * slow_total(batch, slow_gated(defence, batch))
    assert defence.penalty(batch).item() == pytest.approx(slow, **EXACT)


def test_gates_start_with_the_documented_scalars_and_learn_none_of_them():
    defence = Gated(form="gates")
    defence.setup(latent=(6,), classes=3, sigma=0.1)
    documented = {"a": 10, "b": 0.05, "t": 0.3, "kappa": 10, "beta": 1, "margin": 0.1, "power": 2}
    assert {name: defence.gates[name].item() for name in documented} == pytest.approx(documented, rel=1e-6)
    assert not any(p.requires_grad for p in defence.gates.scalars.parameters())
    assert (defence.loss_scale, defence.warmup, defence.gamma, defence.var_threshold) == (0.1, 5, 1e-6, 0.125)


@pytest.mark.parametrize("form", FORMS)
def test_open_gates_leave_only_the_attention_to_learn(form):
    defence = Gated(form=form, open_gates=True)
    defence.setup(latent=(6,), classes=3, sigma=0.1)
    learned = {name for name, p in defence.named_parameters() if p.requires_grad}
    assert learned == {f"attention.scores.{name}.weight" for name in "VUw"}


def test_the_scale_of_the_loss_is_a_factor():
    batch = example(latent=(6,))
    one, two = (ready(Gated(loss_scale=scale), (6,)).penalty(batch).item() for scale in (1.0, 2.0))
    assert two == pytest.approx(2 * one) and one > 0


def test_training_it_alone_makes_the_penalty_fall_while_the_latents_stay_as_they_are():
    """The flaw that the bound does not have."""
    batch = example(n=30, latent=(6,))
    defence = ready(Gated(form="gates"), (6,), unlike_start=0.0)
    before = defence.penalty(batch).item()
    optimiser = torch.optim.Adam(own(defence), lr=0.03)
    for _ in range(100):
        optimiser.zero_grad()
        defence.penalty(batch).backward()
        optimiser.step()
    assert defence.penalty(batch).item() < 0.1 * before


def test_wrong_choices_name_the_right_one():
    with pytest.raises(ValueError, match="did you mean 'hinge'"):
        create_defence("gated", form="hinges")
    with pytest.raises(ValueError, match="did you mean 'quantile'"):
        create_defence("gated", threshold="quantiles")
    with pytest.raises(ValueError, match="did you mean 'spatial'"):
        ready(create_defence("gated", tokens="spacial"), (4, 2, 2))


@pytest.mark.parametrize("threshold", ["noise", "schedule"])
def test_a_threshold_of_noise_needs_noise_and_says_why(threshold):
    with pytest.raises(ValueError, match=r"gated needs noise.*every class looks too wide.*add Noise"):
        ready(Gated(threshold=threshold), (4,), sigma=0.0)


@pytest.mark.parametrize("threshold", ["constant", "quantile"])
def test_other_thresholds_need_none(threshold):
    assert ready(Gated(threshold=threshold), (6,), sigma=0.0).penalty(example(latent=(6,))) > 0


def test_a_whole_latent_too_large_for_attention_names_the_other_tokens():
    ready(Gated(), (4096,), dtype=torch.float32)
    with pytest.raises(ValueError, match=r'4097.*tokens="spatial" or tokens="pooled" or tokens="project"'):
        ready(Gated(), (4097,))
    with pytest.raises(ValueError, match="limit is 4096"):
        ready(Gated(), (512, 7, 7))
    ready(Gated(tokens="spatial"), (512, 7, 7), dtype=torch.float32)
