"""The hybrid against its two halves as slow loops, and who is refined."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.defences import Hybrid, create_defence
from attcem.defences.hybrid import riskiest
from tests.defences.draws import EXACT, TOKENS, batch_of, batches, example, gradients_are_right, ready, shuffled
from tests.defences.slow import slow_bound_losses, slow_gated, slow_slot, slow_total

DEEP = ["slot", "bound"]


def slow_running(risk, cheap):
    """Each class's risk with this batch in it."""
    return {c: 0.9 * risk[c] + 0.1 * cheap[c] if c in risk else cheap[c] for c in cheap}


def slow_hybrid(defence, batch, risk):
    """Class → its loss, and the classes that were refined."""
    cheap = slow_gated(defence.screen, batch)
    running = slow_running(risk, cheap)
    count = max(1, math.ceil(defence.refine * len(cheap)))
    chosen = sorted(running, key=running.get, reverse=True)[:count]
    slow_deep = {"slot": slow_slot, "bound": slow_bound_losses}[defence.deep]
    deep = slow_deep(defence.refined, batch, only=chosen)
    scale = {"slot": 0.25, "bound": 1.0}[defence.deep]
    return {c: scale * deep[c] if c in chosen else 0.1 * cheap[c] for c in cheap}, chosen


@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("deep", DEEP)
@settings(max_examples=15)
@given(drawn=batches(), refine=st.sampled_from([0.01, 0.3, 0.5, 1.0]), seed=st.integers(0, 99))
def test_equal_to_the_slow_combination(deep, tokens, drawn, refine, seed):
    batch, classes = drawn
    defence = ready(Hybrid(deep=deep, tokens=tokens, refine=refine), batch.z.shape[1:], classes)
    known = torch.randn(classes, generator=torch.Generator().manual_seed(seed)).double()
    known[-1] = torch.nan  # not seen before; two such classes might be equally risky
    defence.risk.copy_(known)
    losses, _ = slow_hybrid(defence, batch, {c: value for c, value in enumerate(known.tolist()) if value == value})
    assert defence.penalty(batch).item() == pytest.approx(slow_total(batch, losses), **EXACT)


@settings(max_examples=100)
@given(values=st.lists(st.integers(-50, 50), min_size=1, max_size=20, unique=True), share=st.floats(0.01, 1))
def test_the_share_of_highest_risk_is_chosen_and_at_least_one(values, share):
    chosen = riskiest(torch.tensor(values).double(), share).tolist()
    count = max(1, math.ceil(share * len(values)))
    assert [value for value, yes in zip(values, chosen, strict=True) if yes] == [
        value for value in values if value in sorted(values)[-count:]
    ]


def stepped(defence, batch):
    penalty = defence.penalty(batch)
    defence.observe(batch_of(batch.z.detach(), batch.y))
    return penalty.item()


def test_risk_runs_over_the_steps_in_which_a_class_is_seen():
    defence, risk = ready(Hybrid(refine=0.5), (6,), 5), {}
    for step in range(6):
        z = torch.randn(8, 6, generator=torch.Generator().manual_seed(step), dtype=torch.double) * (1 + step)
        y = torch.arange(8) % 4 if step % 2 else torch.tensor([0, 0, 0, 3, 3, 3, 3, 1])
        batch = batch_of(z, y)
        losses, _ = slow_hybrid(defence, batch, risk)
        risk |= slow_running(risk, slow_gated(defence.screen, batch))
        assert stepped(defence, batch) == pytest.approx(slow_total(batch, losses), **EXACT)
        found = {c: value for c, value in enumerate(defence.risk.tolist()) if value == value}
        assert found == pytest.approx(risk, rel=1e-9)
    assert set(risk) == {0, 1, 2, 3}


def test_yesterdays_risk_decides_not_only_todays():
    defence, batch = ready(Hybrid(refine=0.3), (6,)), example(latent=(6,))
    values = set()
    for riskier in range(3):
        defence.risk.fill_(0.0)[riskier] = 1e3
        _, chosen = slow_hybrid(defence, batch, dict(enumerate(defence.risk.tolist())))
        assert chosen == [riskier]
        values.add(round(defence.penalty(batch).item(), 9))
    assert len(values) == 3


def test_risk_is_remembered_only_by_observing():
    defence, batch = ready(Hybrid(), (6,)), example(latent=(6,))
    defence.penalty(batch)
    assert defence.risk.isnan().all()
    stepped(defence, batch)
    assert defence.risk.isfinite().all()


def test_a_batch_that_is_not_finite_is_no_risk():
    defence, batch = ready(Hybrid(deep="bound"), (6,)), example(latent=(6,))
    stepped(defence, batch)
    before = {name: value.clone() for name, value in defence.state_dict().items()}
    z = batch.z.detach().clone()
    z[0] = torch.nan
    broken = batch_of(z, batch.y)
    stepped(defence, broken)
    assert "lost" in broken.readings
    assert all(torch.equal(value, before[name]) for name, value in defence.state_dict().items())


def test_the_bound_remembers_the_classes_it_was_spent_on():
    defence = ready(Hybrid(deep="bound"), (6,))
    defence.risk.copy_(torch.tensor([0.0, 99.0, 0.0]))
    defence.penalty(example(latent=(6,)))
    assert not defence.refined.remembered.mass.any()
    stepped(defence, example(latent=(6,)))
    assert defence.refined.remembered.mass.any(1).tolist() == [False, True, False]


@pytest.mark.parametrize("deep", DEEP)
def test_risk_and_memory_survive_saving(deep):
    defence, again = (ready(Hybrid(deep=deep, refine=0.5), (6,), 5, seed=seed) for seed in (3, 4))
    batch = example(latent=(6,), classes=4)
    for scale in (1.0, 3.0):
        stepped(defence, batch_of(scale * batch.z.detach(), batch.y))
    again.load_state_dict(defence.state_dict())
    assert again.risk.isnan().tolist() == [False] * 4 + [True]
    assert stepped(again, batch) == stepped(defence, batch)


@pytest.mark.parametrize("deep", DEEP)
@settings(max_examples=15)
@given(drawn=batches(), seed=st.integers(0, 99))
def test_sample_order_and_class_names_do_not_matter(deep, drawn, seed):
    (batch, classes), risk = drawn, torch.randn(drawn[1], generator=torch.Generator().manual_seed(seed)).double()
    defence = ready(Hybrid(deep=deep), batch.z.shape[1:], classes)
    defence.risk.copy_(risk)
    before = defence.penalty(batch).item()
    again, rename = shuffled(batch, classes, seed)
    defence.risk[rename] = risk
    assert defence.penalty(again).item() == pytest.approx(before, **EXACT)


@pytest.mark.parametrize("deep", DEEP)
def test_gradient_is_right_at_latents_and_parameters(deep):
    # one of three classes is refined, and the risk is far from a tie
    defence = ready(Hybrid(deep=deep), (4, 1, 2))
    defence.risk.copy_(torch.tensor([0.0, 99.0, 0.0]))
    assert gradients_are_right(defence, example(n=7, latent=(4, 1, 2)))


def test_both_halves_know_how_far_training_is():
    batch = example(latent=(6,))
    defence = ready(Hybrid(threshold="schedule"), (6,))
    early, late = (defence.penalty(batch_of(batch.z, batch.y, progress)).item() for progress in (0.0, 1.0))
    assert late > early


def test_wrong_choices_name_the_right_one():
    with pytest.raises(ValueError, match="did you mean 'slot'"):
        create_defence("hybrid", deep="slots")
    with pytest.raises(ValueError, match="did you mean 'noise'"):
        create_defence("hybrid", threshold="noises")
    with pytest.raises(ValueError, match="no share of the classes"):
        create_defence("hybrid", refine=0.0)
    with pytest.raises(ValueError, match="did you mean 'spatial'"):
        ready(create_defence("hybrid", tokens="spacial"), (4, 2, 2))
    with pytest.raises(ValueError, match='tokens="spatial"'):
        ready(Hybrid(), (512, 7, 7))


def test_noise_is_needed_by_the_threshold_or_by_the_bound():
    for options in ({}, {"deep": "bound", "threshold": "constant"}):
        with pytest.raises(ValueError, match="hybrid needs noise"):
            ready(Hybrid(**options), (4,), sigma=0.0)
    assert ready(Hybrid(threshold="constant"), (6,), sigma=0.0).penalty(example(latent=(6,))) > 0
