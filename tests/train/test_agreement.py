"""A network, a guard and data that do not belong together are told apart before any work, with the fix."""

import dataclasses
from functools import partial

import pytest
import torch
from torch import nn

import attcem
from attcem.attacks.linear import Linear
from attcem.config import ClientsConfig
from attcem.defences import DEFENCES, Undefended, create_defence
from attcem.train import check_arguments, check_guard, check_network, fit_clients
from tests.conftest import shrink


@pytest.fixture(scope="module")
def grey(fashion):
    return shrink(fashion, private=64, validation=20, public=64, test=20)


def network(data, **options):
    return attcem.split("vgg11_bn", data=data, cut=4, bottleneck=4, width=0.05, **options)


def coloured(data, size=28, classes=10):
    """Data of noise with other images or classes."""
    x = torch.randint(0, 256, (200, size, size, 3), dtype=torch.uint8)
    return attcem.make_data((x, torch.arange(200) % classes))


def larger(data):
    return attcem.make_data((data.private.x.repeat(1, 2, 2, 1), data.private.y))


MISFITS = {
    "colours": (lambda grey: coloured(grey), r"does not take images of 3×28×28 \("),
    "size": (
        lambda grey: attcem.make_data((grey.private.x.repeat(1, 2, 2, 1), grey.private.y)),
        "give latents of 4×14×14",
    ),
    "classes": (lambda grey: coloured(grey, classes=12), "the data have 12 classes, the network knows 10"),
}


DOORS = {
    "fit": partial(attcem.fit, epochs=1),
    "fit_clients": partial(fit_clients, clients=ClientsConfig(count=2), epochs=1),
    "audit": partial(attcem.audit, suite="smoke"),
}


@pytest.mark.parametrize("misfit", MISFITS)
@pytest.mark.parametrize("door", DOORS)
def test_other_data_are_refused_at_every_door(misfit, door, grey):
    make, words = MISFITS[misfit]
    with pytest.raises(ValueError, match=f"{words}.*attcem.split"):
        DOORS[door](network(grey), Undefended(), make(grey), progress=False)


@pytest.mark.parametrize("name", ["vib", "lca", "adversarial_noise"])
def test_a_guard_that_was_never_set_up_is_refused(name, grey):
    assert name in DEFENCES
    with pytest.raises(ValueError, match=r"the guard cannot release latents of this network .*attcem\.fit"):
        attcem.audit(network(grey), create_defence(name), grey, suite="smoke", progress=False)


def test_a_guard_of_another_network_is_refused(grey):
    guard = create_defence("vib")
    attcem.fit(network(grey), guard, grey, epochs=1, batch=32, progress=False)
    other = attcem.split("vgg11_bn", data=grey, cut=4, bottleneck=6, width=0.05)
    with pytest.raises(ValueError, match="the guard cannot release latents of this network"):
        attcem.audit(other, guard, grey, suite="smoke", progress=False)


def test_the_question_leaves_no_trace(grey):
    model, guard = network(grey), attcem.Noise(0.1)
    model.train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.get_rng_state()
    check_guard(model, attcem.Guard(guard), check_network(model, grey, grey.private))
    assert model.training and torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


def test_more_outputs_than_classes_are_no_misfit(grey):
    class Wide(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.head = nn.Conv2d(1, 4, 3, 2, 1), nn.Sequential(nn.Flatten(), nn.Linear(4 * 14 * 14, 20))

        def forward(self, x):
            return self.head(self.stem(x))

    model = attcem.split(Wide(), at="stem", example=grey.private[:2].pixels())
    assert attcem.fit(model, Undefended(), grey, epochs=1, batch=32, progress=False).finished


WRONG = {
    "no guard": (lambda m, g, d: (m, None, d), r"guard is a NoneType.*attcem\.Guard\(\)"),
    "a list of defences": (lambda m, g, d: (m, [g], d), "guard is a list"),
    "a class": (lambda m, g, d: (m, attcem.Noise, d), "guard is the class Noise"),
    "swapped": (lambda m, g, d: (g, m, d), "model is a Noise, not a network cut in two"),
    "not cut": (lambda m, g, d: (nn.Linear(2, 2), g, d), r"model is a Linear.*attcem\.split"),
    "no parts": (lambda m, g, d: (m, g, d.private), r"data is a Images.*attcem\.make_data"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_given_in_the_wrong_place_is_named(grey, case):
    given, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        check_arguments(*given(network(grey), attcem.Noise(0.1), grey))


@pytest.mark.parametrize("door", ["attcem.train.loop", "attcem.train.federated", "attcem.assess"])
def test_every_door_asks(grey, monkeypatch, door):
    def refuse(model, guard, data):
        raise ValueError("asked")

    monkeypatch.setattr(f"{door}.check_arguments", refuse)
    call = {"attcem.train.loop": attcem.fit, "attcem.assess": attcem.audit}.get(
        door, partial(fit_clients, clients=ClientsConfig(count=2))
    )
    with pytest.raises(ValueError, match="asked"):
        call(network(grey), attcem.Noise(0.1), grey, progress=False)


def test_resuming_under_another_guard_is_refused(grey, tmp_path):
    attcem.fit(network(grey), attcem.Guard(), grey, epochs=1, batch=32, out=tmp_path, progress=False)
    with pytest.raises(ValueError, match="another defence"):
        attcem.fit(
            network(grey), attcem.Noise(3.0), grey, epochs=1, batch=32, out=tmp_path, resume=True, progress=False
        )


def test_a_finished_run_is_only_loaded(grey, tmp_path):
    first, again = network(grey), network(grey)
    options = {"epochs": 1, "batch": 32, "out": tmp_path, "progress": False}
    attcem.fit(first, attcem.Noise(0.1), grey, **options)
    attcem.fit(again, attcem.Noise(0.1), grey, resume=True, **options)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))


def flags(grey, trained, audited):
    model = network(grey)
    attcem.fit(model, trained, grey, epochs=1, batch=32, progress=False)
    audited.setup(latent=model.latent_shape, classes=10, sigma=audited.sigma)
    return attcem.audit(
        model, audited, grey, suite="none", images=8, attacks={"linear": Linear()}, progress=False
    ).flags


def test_an_audit_under_another_guard_is_flagged(grey):
    found = flags(grey, attcem.Noise(0.5), attcem.Guard(attcem.Noise(5.0)))
    assert any("audited under [{'noise': {'sigma': 5.0}}], but trained under" in flag for flag in found)
    assert not any("trained under" in flag for flag in flags(grey, attcem.Noise(0.5), attcem.Guard(attcem.Noise(0.5))))


def test_an_audit_without_a_surrogate_that_was_trained_is_flagged(grey):
    trained = attcem.Noise(0.5) + create_defence("gated", form="gates", warmup=0)
    assert any("but trained under" in flag for flag in flags(grey, trained, attcem.Guard(attcem.Noise(0.5))))


class Lost(attcem.Defence):
    def penalty(self, batch):
        return batch.z.mean() * float("nan")


class Sometimes(attcem.Defence):
    def release(self, z):
        return z + 0.1 if self.training else z


class Secret(attcem.Defence):
    def release(self, z):
        return z + 0.1 * torch.randn_like(z)


@pytest.mark.parametrize(
    ("defence", "message"),
    [
        (Lost, "penalties were not finite 2 times in 2 steps"),
        (Sometimes, "something else in training"),
        (Secret, "draws random numbers that it does not declare"),
    ],
)
def test_a_defence_that_is_not_what_it_seems_is_flagged(grey, defence, message):
    found = flags(grey, defence(), attcem.Guard(defence()))
    assert any(message in flag for flag in found), found


def test_a_penalty_of_another_shape_is_named(grey):
    class Vector(attcem.Defence):
        def penalty(self, batch):
            return batch.z.flatten(1).mean(1)

    with pytest.raises(ValueError, match=r"penalty of vector must be a scalar.*shape \(32,\)"):
        attcem.fit(network(grey), Vector(), grey, epochs=1, batch=32, progress=False)


def test_too_few_public_images_are_refused(grey):
    few = dataclasses.replace(grey, public=grey.public[:3])
    with pytest.raises(ValueError, match="owns 3 public images: give at least 10"):
        attcem.audit(network(grey), attcem.Noise(0.1), few, suite="smoke", progress=False)
