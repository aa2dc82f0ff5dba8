"""A learned perturbation: bounded, repeatable, last in the chain, and trained by the task and against an adversary."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.defences import AdversarialNoise, Noise, Stage, create_defence, own_parameters
from attcem.types import Batch
from tests.defences.test_arl import SMALL, coarse_batch, made, same, state, taught
from tests.probes import Blank


def perturbation(defence, z):
    return defence.release(z) - z


@settings(max_examples=20)
@given(
    st.sampled_from([(1,), (7,), (2, 3), (3, 2, 5)]),
    st.floats(0.01, 5),
    st.sampled_from([0.1, 1.0, 1e3]),
    st.integers(0, 999),
)
def test_a_perturbation_stays_within_its_budget_however_wild_the_generator(latent, budget, size, seed):
    torch.manual_seed(seed)
    z = torch.randn(4, *latent, dtype=torch.double)
    for norm, measure in (("linf", lambda d: d.abs().amax(1)), ("l2", lambda d: d.square().mean(1).sqrt())):
        defence = AdversarialNoise(budget=budget, norm=norm, width=4, **SMALL)
        defence.setup(latent=latent, classes=3, sigma=0.0)
        defence.double()
        for p in defence.generator.parameters():
            p.data = size * torch.randn_like(p)
        found = measure(perturbation(defence, z).flatten(1))
        assert (found <= budget * (1 + 1e-9)).all()
        assert size < 1 or found.max() > 0.1 * budget, "none of the budget is used"


def test_under_l2_single_numbers_may_take_more_than_their_share():
    defence = made(AdversarialNoise(budget=0.1, norm="l2", **SMALL), latent=(50,))
    last = defence.generator[3]
    last.weight.data.zero_(), last.bias.data.zero_()
    last.bias.data[0] = 100.0
    moved = perturbation(defence, torch.zeros(2, 50))
    assert moved[:, 0].min() > 0.5 and moved[:, 1:].abs().max() == 0


def test_the_same_latent_is_always_perturbed_the_same_way():
    defence, z = made(AdversarialNoise(**SMALL)), coarse_batch().z
    assert torch.equal(defence.release(z), defence.release(z))
    torch.testing.assert_close(defence.release(z)[:3], defence.release(z[:3]))


def test_it_comes_last_before_the_wire_and_perturbs_what_the_others_let_out():
    chain = made(AdversarialNoise(budget=0.2, **SMALL) + Blank() + Noise(10.0))
    assert AdversarialNoise.stage == max(set(Stage) - {Stage.WIRE}) and isinstance(chain.links[0], Noise)
    assert chain.release(torch.rand(5, 1, 4, 4)).abs().max() <= 0.2 + 1e-6


def test_the_generator_is_the_defences_own_and_the_adversary_is_not():
    batch, defence = coarse_batch(), made(Noise(0.1) + AdversarialNoise(lam=1.0, threshold=-1.0, **SMALL))
    noise = defence.links[1]
    assert {id(p) for p in own_parameters(defence)} == {id(p) for p in noise.generator.parameters()}
    noise.penalty(batch).backward()
    assert batch.z.grad.any() and all(p.grad is not None for p in noise.generator.parameters())
    assert all(p.grad is None for p in noise.adversary.parameters())


def test_the_tasks_gradient_reaches_the_generator_through_the_release():
    defence, batch = made(AdversarialNoise(**SMALL)), coarse_batch()
    defence.release(batch.z).square().sum().backward()
    assert all(p.grad.any() for p in defence.generator.parameters())


@pytest.mark.parametrize("metric", ["ssim", "mse"])
def test_the_generator_learns_to_mislead_a_frozen_adversary(metric):
    batch = coarse_batch()
    defence = made(AdversarialNoise(metric=metric, threshold={"ssim": -1.0, "mse": 1.0}[metric], **SMALL))
    taught(defence, batch)
    before, adversary = defence.penalty(batch).item(), state(defence.adversary)
    optimiser = torch.optim.SGD(own_parameters(defence), lr=0.3 if metric == "ssim" else 3.0)
    for _ in range(40):
        optimiser.zero_grad()
        defence.penalty(batch).backward()
        optimiser.step()
    assert same(state(defence.adversary), adversary)
    assert defence.penalty(batch).item() < before - {"ssim": 0.1, "mse": 0.005}[metric]


def test_the_adversary_learns_from_perturbed_latents(monkeypatch):
    batch, defence = coarse_batch(), made(AdversarialNoise(**SMALL))
    seen = []
    monkeypatch.setattr(type(defence.adversary), "learn", lambda self, released, x, metric: seen.append(released))
    taught(defence, batch, times=1)
    assert torch.equal(seen[0], defence.release(batch.z)) and not torch.equal(seen[0], batch.z)


def test_the_generator_is_penalised_even_where_the_encoder_is_not():
    assert AdversarialNoise().lam == 0 and AdversarialNoise().penalises


def test_a_larger_loss_scale_is_a_larger_penalty():
    batch = coarse_batch()
    one, ten = (made(AdversarialNoise(threshold=-1.0, loss_scale=scale, **SMALL)).penalty(batch) for scale in (1.0, 10))
    torch.testing.assert_close(ten, 10 * one)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_latent_that_is_not_finite_costs_nothing_but_its_own_penalty(value):
    batch, defence = coarse_batch(), made(AdversarialNoise(threshold=-1.0, **SMALL))
    z = batch.z.detach().clone()
    z[0, 0, 0, 0] = value
    z.requires_grad_()
    broken = Batch(batch.x, batch.y, z)
    penalty = defence.penalty(broken)
    penalty.backward()
    assert (penalty.item(), z.grad.any().item(), "lost" in broken.readings) == (0.0, False, True)
    before = state(defence)
    defence.observe(Batch(batch.x, batch.y, z.detach()))
    assert same(state(defence), before) and defence.penalty(batch) > 0


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_latents_of_any_size_are_released_with_finite_gradients(norm):
    defence, start = made(AdversarialNoise(norm=norm, **SMALL)), coarse_batch()
    for p in defence.generator.parameters():
        p.data *= 30
    for scale in [0.0, *(10.0**exponent for exponent in range(-44, 39, 3))]:
        z = (scale * start.z.detach()).requires_grad_()
        released, penalty = defence.release(z), defence.penalty(Batch(start.x, start.y, z))
        found = torch.autograd.grad(released.mean() + penalty, [z, *own_parameters(defence)])
        assert released.isfinite().all() and penalty.isfinite() and all(part.isfinite().all() for part in found)


def test_it_says_that_it_promises_nothing():
    (flag,) = AdversarialNoise().flags
    assert "bounds nothing" in flag


@pytest.mark.parametrize("options", [{"budget": 0.0}, {"budget": float("inf")}, {"width": 0}])
def test_a_perturbation_that_could_not_be_one_is_refused(options):
    with pytest.raises(ValueError, match="no perturbation"):
        create_defence("adversarial_noise", **options)


def test_an_unknown_norm_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'linf'"):
        create_defence("adversarial_noise", norm="inf")
