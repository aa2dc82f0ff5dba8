"""One pass through the encoder gives the gradients of the two-pass original."""

import copy

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.defences import DEFENCES, WEIGHTED, Guard, Noise, Undefended, create_defence
from attcem.models import split
from attcem.train.gradients import one_pass
from attcem.types import Batch
from tests.probes import Blank, Poison, Scaled, Shrink


def two_passes(model, guard, x, y, weight):
    """The slow, obvious way: differentiate the task through everything, then each penalty through the encoder."""
    own = {link: list(link.parameters()) for link in guard.links}
    z = model.encoder(x)
    F.cross_entropy(model.decoder(guard.release(z)), y).backward()
    for link in guard.links:
        if link.penalises and weight(link) > 0:
            weighed = list(link.parameters()) if WEIGHTED in link.needs else []
            stashed = {p: p.grad for p in [*model.encoder.parameters(), *weighed]}
            for p in stashed:
                p.grad = None
            seen = x.clone().requires_grad_()
            link.penalty(Batch(seen, y, model.encoder(seen))).backward()
            for p, task in stashed.items():
                p.grad = task + weight(link) * p.grad
    return {**own}


def gradients(model, guard):
    named = [*model.named_parameters(), *guard.named_parameters()]
    return {name: None if p.grad is None else p.grad.clone() for name, p in named}


def check_one_pass_equals_two(guard, batch, w_lr, seed):
    torch.manual_seed(seed)
    guard = Guard.of(guard)
    model = split("vgg11", shape=(1, 28, 28), classes=4, cut=4, bottleneck=3, width=0.05).double()
    guard.setup(latent=model.latent_shape, classes=4, sigma=guard.sigma)
    guard.double()
    x, y = torch.rand(batch, 1, 28, 28, dtype=torch.double), torch.randint(0, 4, (batch,))
    guard.observe(Batch(x, y, model.encoder(torch.rand_like(x)).detach()))
    other_model, other_guard = copy.deepcopy(model), copy.deepcopy(guard)
    torch.manual_seed(1)
    report = one_pass(model, guard, x, y, lambda link: link.lam * w_lr)
    assert all(value > 0 for value in report.penalties.values())
    torch.manual_seed(1)
    two_passes(other_model, other_guard, x, y, lambda link: link.lam * w_lr)
    slow = gradients(other_model, other_guard)
    for name, fast in gradients(model, guard).items():
        torch.testing.assert_close(fast, slow[name], atol=1e-10, rtol=1e-10)
        assert name.startswith("chained") or fast.abs().sum() > 0, name


STEPS = {"lam": st.floats(0.01, 20), "w_lr": st.sampled_from([1.0, 0.02]), "seed": st.integers(0, 99)}


@settings(max_examples=10)
@given(batch=st.integers(2, 9), **STEPS)
def test_one_pass_equals_two(batch, lam, w_lr, seed):
    check_one_pass_equals_two(Noise(0.2) + Scaled(lam=lam) + Shrink(lam=0.5), batch, w_lr, seed)


PENALTIES = [
    *[("gmm", {"form": form, "gamma": 1e-6, "var_threshold": 1e-6}) for form in ("hinge", "variance", "logdet")],
    *[("gated", {"form": form}) for form in ("hinge", "gates")],
    *[("slot", {"form": form, "shut_off": False}) for form in ("hinge", "mixture")],
    *[
        ("bound", {"cov": cov, "assign": assign})
        for cov in ("diag", "channel", "gram")
        for assign in ("class", "gated")
    ],
    ("bound", {"assign": "slot", "tokens": "spatial", "memory": 0.9}),
    *[("hybrid", {"deep": deep}) for deep in ("slot", "bound")],
    ("nopeek", {}),
    ("fisher", {}),
    ("vib", {}),
    ("arl", {"threshold": -1.0, "channels": 8, "blocks": 1}),
    ("arl", {"metric": "mse", "threshold": 1.0, "channels": 8, "blocks": 1}),
    ("adversary", {"channels": 8, "blocks": 1}),
    ("adversarial_noise", {"threshold": -1.0, "channels": 8, "blocks": 1}),
]


@pytest.mark.parametrize(("name", "options"), PENALTIES, ids=str)
@settings(max_examples=5)
@given(batch=st.integers(5, 9), **STEPS)
def test_one_pass_equals_two_for_every_penalty(name, options, batch, lam, w_lr, seed):
    check_one_pass_equals_two(Noise(0.2) + create_defence(name, lam=lam, **options), batch, w_lr, seed)


def test_no_penalty_is_forgotten_here():
    assert {name for name in DEFENCES if create_defence(name).penalises} == {name for name, _ in PENALTIES}


def make(guard):
    torch.manual_seed(0)
    guard = Guard.of(guard)
    model = split("vgg11_bn", shape=(1, 28, 28), classes=4, cut=4, bottleneck=3, width=0.05)
    guard.setup(latent=model.latent_shape, classes=4, sigma=guard.sigma)
    return model, guard, torch.rand(6, 1, 28, 28), torch.arange(6) % 4


def test_a_defences_own_parameters_never_feel_lambda():
    found = []
    for lam in (1.0, 50.0):
        model, guard, x, y = make(Scaled(lam=lam))
        one_pass(model, guard, x, y, lambda link: link.lam)
        found.append(guard.links[0].gain.grad)
    assert torch.equal(*found)


def test_a_penalty_that_the_defence_itself_replaced_is_counted_too():
    model, guard, x, y = make(Noise(0.1) + create_defence("bound"))
    x[0] = torch.nan
    assert one_pass(model.eval(), guard, x, y, lambda link: 1.0).lost_penalties == 1


def test_while_the_weight_is_zero_a_defence_trains_itself_and_leaves_the_encoder_alone():
    model, guard, x, y = make(Scaled())
    report = one_pass(model, guard, x, y, lambda link: 0.0)
    assert guard.links[0].gain.grad.any() and report.penalties == {}
    alone, undefended, x, y = make(Undefended())
    one_pass(alone, undefended, x, y, lambda link: 0.0)
    for mine, theirs in zip(model.parameters(), alone.parameters(), strict=True):
        assert torch.equal(mine.grad, theirs.grad)


def test_without_parameters_a_penalty_of_weight_zero_is_not_computed():
    model, guard, x, y = make(Poison(penalty_at=[1]))
    one_pass(model, guard, x, y, lambda link: 0.0)
    assert guard.links[0].penalised == 0


def test_a_watched_step_tells_how_task_and_penalty_pull_at_the_latent():
    model, guard, x, y = make(Shrink(lam=3.0))
    told = one_pass(model, guard, x, y, lambda link: link.lam).readings
    assert told.keys() == {"penalty_weight", "shrink/weight", "shrink/penalty"}
    assert told["penalty_weight"] == 3.0 and told["shrink/penalty"] > 0
    readings = one_pass(model, guard, x, y, lambda link: link.lam, watched=True).readings
    z = model.encoder(x).detach().requires_grad_()
    task = torch.autograd.grad(F.cross_entropy(model.decoder(z), y), z)[0].flatten()
    penalty = 3.0 * torch.autograd.grad(z.square().mean(), z)[0].flatten()
    expected = {
        "shrink/task_gradient": task.norm(),
        "shrink/penalty_gradient": penalty.norm(),
        "shrink/gradient_cosine": F.cosine_similarity(task, penalty, dim=0),
    }
    assert readings.keys() == expected.keys() | told.keys()
    for name, value in expected.items():
        torch.testing.assert_close(readings[name], value, rtol=1e-3, atol=1e-5)


def test_a_blank_release_still_trains_the_decoder_and_leaves_the_encoder_alone():
    model, guard, x, y = make(Blank())
    one_pass(model, guard, x, y, lambda link: 1.0)
    assert all(not p.grad.any() for p in model.encoder.parameters())
    assert any(p.grad.any() for p in model.decoder.parameters())


def test_a_penalty_that_is_not_finite_is_nothing_and_counted():
    model, guard, x, y = make(Poison(penalty_at=[1]))
    report = one_pass(model, guard, x, y, lambda link: 1.0)
    assert report.lost_penalties == 1 and report.penalties == {"poison": 0.0}
    model_clean, clean, x, y = make(Undefended())
    one_pass(model_clean, clean, x, y, lambda link: 1.0)
    for mine, theirs in zip(model.parameters(), model_clean.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_a_penalty_of_weight_zero_is_not_computed(weight):
    model, guard, x, y = make(Poison())
    one_pass(model, guard, x, y, lambda link: weight)
    assert guard.links[0].penalised == weight
