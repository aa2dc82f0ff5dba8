"""An adversary inside training: no optimiser but its own, no gradient of the penalty, and nothing lost by a stop."""

import dataclasses

import pytest
import torch

from attcem.defences import ARL, AdversarialNoise, Guard, Noise
from attcem.models import split
from attcem.train import fit, learner, read_state, read_tensors
from attcem.train.gradients import one_pass
from attcem.train.schedule import Recipe
from tests.conftest import shrink
from tests.probes import Scaled

SMALL = {"channels": 4, "blocks": 1}


@pytest.fixture(scope="module")
def few(small):
    return shrink(small, private=160, validation=50, public=50, test=10)


def network(data):
    torch.manual_seed(0)
    return split("vgg11_bn", data=data, cut=4, bottleneck=4, width=0.05)


def stepping(guard):
    """A network, the guard set up for it, and a batch."""
    torch.manual_seed(0)
    guard = Guard.of(guard)
    model = split("vgg11_bn", shape=(1, 28, 28), classes=4, cut=4, bottleneck=3, width=0.05)
    guard.setup(latent=model.latent_shape, classes=4, sigma=guard.sigma)
    return model, guard, torch.rand(6, 1, 28, 28), torch.arange(6) % 4


def moved(guard):
    return {name: tensor.clone() for name, tensor in guard.state_dict().items() if ".adversary." in f".{name}"}


def test_the_adversary_is_in_no_group_of_the_main_optimiser_and_everything_else_is_there_once(small, monkeypatch):
    made = []
    build = Recipe.optimiser
    monkeypatch.setattr(Recipe, "optimiser", lambda *given: made.append(build(*given)) or made[-1])
    model, noise, guard = network(small), AdversarialNoise(**SMALL), Noise(0.1) + ARL(**SMALL) + Scaled(lam=0.1)
    guard = guard + noise
    fit(model, guard, small, epochs=1, progress=False)
    trained = [id(p) for group in made[0].param_groups for p in group["params"]]
    adversaries = {id(p) for link in guard.links for p in getattr(link, "adversary", Noise()).parameters()}
    everything = {id(p) for module in (model, guard) for p in module.parameters()}
    assert len(adversaries) > 10 and not adversaries & set(trained)
    assert sorted(trained) == sorted(everything - adversaries)
    assert all(id(p) in trained for p in noise.generator.parameters())


@pytest.mark.parametrize("kind", [ARL, AdversarialNoise])
def test_a_step_leaves_the_adversary_without_gradient_and_reaches_the_encoder(kind):
    model, guard, x, y = stepping(Noise(0.1) + kind(lam=1.0, threshold=-1.0, **SMALL))
    before = moved(guard)
    plain, shaped = (gradients(model, guard, x, y, weight) for weight in (0.0, 1.0))
    assert any((a - b).abs().max() > 1e-6 for a, b in zip(plain, shaped, strict=True))
    assert all(p.grad is None for p in guard.links[1].adversary.parameters())
    assert all(torch.equal(before[name], tensor) for name, tensor in moved(guard).items())


def gradients(model, guard, x, y, weight):
    model.zero_grad(), guard.zero_grad(), torch.manual_seed(5)
    one_pass(model, guard, x, y, lambda link: weight)
    return [p.grad for p in model.encoder.parameters()]


def test_the_generator_learns_from_task_and_penalty_while_the_encoder_is_spared():
    found = []
    for threshold in (-1.0, 2.0):
        model, guard, x, y = stepping(AdversarialNoise(threshold=threshold, **SMALL))
        encoder = gradients(model, guard, x, y, 0.0)
        found.append((encoder, [p.grad for p in guard.links[0].generator.parameters()]))
    (encoder, generator), (encoder_idle, generator_idle) = found
    assert all(torch.equal(a, b) for a, b in zip(encoder, encoder_idle, strict=True))
    assert all(g.any() for g in generator_idle), "the task does not reach the generator"
    assert any(not torch.equal(a, b) for a, b in zip(generator, generator_idle, strict=True))


def test_the_adversary_learns_once_in_every_step_that_was_taken(small, monkeypatch):
    steps = 0

    def sometimes_not_finite(*given, **how):
        nonlocal steps
        steps += 1
        report = one_pass(*given, **how)
        return dataclasses.replace(report, loss=report.loss * float("nan")) if steps in (2, 4) else report

    monkeypatch.setattr(learner, "one_pass", sometimes_not_finite)
    guard = ARL(**SMALL)
    state = fit(network(small), guard, small, epochs=1, progress=False)
    assert steps == 5 and state.cost["skipped_batches"] == 2
    assert guard.adversary.steps.item() == 3


@pytest.mark.parametrize("kind", [ARL, AdversarialNoise])
def test_training_goes_on_as_if_never_interrupted(kind, few, tmp_path):
    def run(out, *, stop_at=None, resume=False):
        link = kind(lam=0.3, warmup=1, threshold=0.0, steps=2, **SMALL)
        watch, steps = link.observe, 0

        def observe(batch):
            nonlocal steps
            steps += 1
            if steps == stop_at:
                raise KeyboardInterrupt
            watch(batch)

        link.observe = observe
        fit(network(few), Noise(0.1) + link, few, epochs=3, batch=32, out=out, resume=resume, progress=False)
        return link

    link = run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts", stop_at=13)
    run(tmp_path / "parts", resume=True)
    whole, parts = (
        read_tensors(tmp_path / name / "checkpoint", read_state(tmp_path / name / "checkpoint"), "best")
        for name in ("whole", "parts")
    )
    assert {"guard.chained.1.adversary.first", "guard.chained.1.adversary.steps"} <= whole.keys()
    assert whole.keys() == parts.keys() and all(torch.equal(whole[name], parts[name]) for name in whole)
    assert link.adversary.steps.item() == 30, "two steps for each of five batches an epoch"


@pytest.mark.slow
def test_training_against_the_adversary_lowers_what_it_can_see(small):
    def fares(lam):
        guard = ARL(lam=lam, metric="mse", threshold=1.0, lr=1e-2, channels=8, blocks=1)
        state = fit(network(small), guard, small, epochs=6, lr=0.05, progress=False)
        return state.history[-1]["arl/adversary_mse"]

    free, opposed = fares(1e-9), fares(30.0)
    assert opposed > 1.15 * free
