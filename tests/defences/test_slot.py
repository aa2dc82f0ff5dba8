"""Slot and gated cross attention against slow loops; the early shut-off, and that it does not pass in silence."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.defences import Slot, create_defence
from tests.defences.draws import EXACT, THRESHOLDS, TOKENS, batch_of, batches, example, ready
from tests.defences.slow import slow_slot, slow_total

FORMS = ["hinge", "mixture"]


def plain(form, **options):
    """Penalised from the first call."""
    return Slot(form=form, shut_off=False, slots=3, **options)


@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=20)
@given(drawn=batches(), threshold=st.sampled_from(THRESHOLDS), open_gates=st.booleans())
def test_equal_to_the_slow_loop(form, tokens, drawn, threshold, open_gates):
    batch, classes = drawn
    defence = plain(form, tokens=tokens, width=6, iters=2, threshold=threshold, open_gates=open_gates)
    defence = ready(defence, batch.z.shape[1:], classes)
    slow = 0.25 * slow_total(batch, slow_slot(defence, batch))
    assert defence.penalty(batch).item() == pytest.approx(slow, **EXACT)


def test_the_scalars_of_the_mixture_start_as_documented_and_are_all_learned():
    defence = plain("mixture").train()
    defence.setup(latent=(6,), classes=3, sigma=0.1)
    documented = {"a": 10, "b": 0.05, "t": 0.3, "kappa": 10, "beta": 1, "margin": 0.1, "power": 2}
    assert {name: defence.gates[name].item() for name in documented} == pytest.approx(documented, rel=1e-6)
    defence.penalty(example(latent=(6,), dtype=torch.float32)).backward()
    for name in (*documented, "sharpness"):
        gradient = defence.gates.scalars[name].grad
        assert gradient is not None and gradient.isfinite() and gradient != 0, name
    assert (defence.loss_scale, defence.warmup, Slot().slots, Slot().iters) == (0.25, 3, 8, 3)


@pytest.mark.parametrize("form", FORMS)
def test_every_parameter_has_a_gradient(form):
    defence = plain(form, tokens="project", width=8).train()
    defence.setup(latent=(4, 2, 2), classes=3, sigma=0.1)
    defence.penalty(example(latent=(4, 2, 2), dtype=torch.float32)).backward()
    for name, p in defence.named_parameters():
        assert p.grad is not None and p.grad.isfinite().all() and p.grad.any(), name


def test_open_gates_have_no_gate_no_learned_scalar_and_no_learned_scale():
    defence = ready(Slot(form="mixture", open_gates=True), (6,))
    learned = {name.split(".")[0] for name, p in defence.named_parameters() if p.requires_grad}
    assert learned == {"attention", "cross"}
    batch = example(latent=(6,))
    assert all(defence.penalty(batch) > 0 for _ in range(3)) and int(defence.calls) == 0


def hold(defence, **levels):
    """Keep gates at these levels, whatever the features are."""
    if "dim" in levels:
        defence.gates.mlp[2].weight.data.zero_()
        defence.gates.mlp[2].bias.data.fill_(torch.tensor(levels["dim"]).logit())
    if "snr" in levels:
        defence.gates.scalars["kappa"].data.fill_(math.log(1e-12))
        defence.gates.scalars["t"].data.fill_(-1e12 * torch.tensor(levels["snr"]).logit())


def silent(defence, batch):
    """Whether a call costs nothing: then it is a zero with a graph, and does not pull."""
    z = batch.z.detach().clone().requires_grad_()
    penalty = defence.penalty(batch_of(z, batch.y))
    penalty.backward()
    assert penalty.isfinite() and z.grad.isfinite().all() and (penalty.item() == 0) == (not z.grad.any())
    return penalty.item() == 0


def followed(**options):
    return ready(Slot(form="mixture", slots=3, iters=1, **options), (6,), unlike_start=0.0), example(latent=(6,))


@pytest.mark.parametrize("moving", ["snr", "dim"])
def test_silent_for_a_hundred_calls_and_then_while_the_running_mean_of_a_gate_is_high(moving):
    defence, batch = followed()
    limit, mean, slow, found = {"snr": 0.5, "dim": 0.6}[moving], None, [], []
    for call in range(150):
        level = 0.9 if 110 <= call < 125 else 0.2
        hold(defence, **({"snr": 0.2, "dim": 0.2} | {moving: level}))
        mean = level if mean is None else 0.9 * mean + 0.1 * level
        slow.append(call < 100 or mean > limit)
        found.append(silent(defence, batch))
    assert found == slow and slow.count(True) > 105 and not slow[-1]
    assert getattr(defence, f"mean_{moving}_gate").item() == pytest.approx(mean, rel=1e-6)
    assert (int(defence.calls), int(defence.silent)) == (150, slow.count(True))


def test_counters_and_running_means_survive_saving():
    defence, batch = followed()
    hold(defence, snr=0.2, dim=0.2)
    for _ in range(99):
        defence.penalty(batch)
    again, _ = followed()
    again.load_state_dict(defence.state_dict())
    assert [silent(again, batch) for _ in range(2)] == [True, False]
    assert (int(again.calls), int(again.silent)) == (101, 100)
    assert again.mean_snr_gate.item() == pytest.approx(0.2) == again.mean_dim_gate.item()


def test_says_so_when_most_calls_were_silent_and_only_then():
    defence, batch = followed()
    assert defence.flags == []
    hold(defence, snr=0.2, dim=0.2)
    for _ in range(199):
        defence.penalty(batch)
    (flag,) = defence.flags
    assert "shut off in 50% of its steps" in flag and "snr gate 0.20" in flag and "dim gate 0.20" in flag
    defence.penalty(batch)
    assert (int(defence.calls), int(defence.silent)) == (200, 100) and defence.flags == []


def test_silence_can_be_refused():
    defence, batch = followed(shut_off=False)
    hold(defence, snr=0.99, dim=0.99)
    assert not silent(defence, batch) and defence.flags == []


def test_a_silent_call_still_has_a_value_to_look_at():
    defence, batch = followed()
    assert silent(defence, batch) and defence.value(batch) > 0
    defence.penalty(batch)
    assert batch.readings == {"shut_off": 1}


def test_a_hinge_is_never_shut_off():
    defence = ready(Slot(), (6,))
    assert not silent(defence, example(latent=(6,))) and defence.flags == []


def test_a_lost_batch_leaves_the_running_means_alone():
    defence, batch = followed()
    broken = batch_of(torch.full_like(batch.z, torch.nan), batch.y)
    defence.penalty(broken)
    assert "lost" in broken.readings and int(defence.calls) == 0 and defence.mean_snr_gate == 0


def test_slots_start_afresh_in_training_and_fixed_in_evaluation():
    defence, batch = ready(plain("hinge"), (6,)), example(latent=(6,))
    assert defence.penalty(batch) == defence.penalty(batch)
    defence.train()
    assert defence.penalty(batch) != defence.penalty(batch)


@pytest.mark.parametrize("form", FORMS)
def test_a_latent_of_512_channels_needs_at_most_five_million_parameters(form):
    defence = Slot(form=form)
    defence.setup(latent=(512, 7, 7), classes=10, sigma=0.1)
    assert sum(p.numel() for p in defence.parameters()) <= 5_000_000


def test_wrong_choices_name_the_right_one():
    with pytest.raises(ValueError, match="did you mean 'mixture'"):
        create_defence("slot", form="mixtures")
    with pytest.raises(ValueError, match="did you mean 'schedule'"):
        create_defence("slot", threshold="scheduled")
    with pytest.raises(ValueError, match="did you mean 'pooled'"):
        ready(create_defence("slot", tokens="pool"), (4, 2, 2))
    with pytest.raises(ValueError, match="at least one slot"):
        ready(create_defence("slot", slots=0), (4, 2, 2))


def test_a_threshold_of_noise_needs_noise_and_says_why():
    with pytest.raises(ValueError, match=r"slot needs noise.*every class looks too wide.*add Noise"):
        ready(Slot(), (4,), sigma=0.0)
    assert ready(plain("hinge", threshold="constant"), (6,), sigma=0.0).penalty(example(latent=(6,))) > 0


def test_a_whole_latent_too_large_for_attention_names_the_other_tokens():
    with pytest.raises(ValueError, match=r'tokens="spatial" or tokens="pooled" or tokens="project"'):
        ready(Slot(tokens="flat"), (512, 7, 7))
