"""A network, a guard and data that do not belong together are told apart before any work, with the fix."""

from functools import partial

import pytest
import torch
from torch import nn

import attcem
from attcem.config import ClientsConfig
from attcem.defences import DEFENCES, Undefended, create_defence
from attcem.train import check_guard, check_network, fit_clients
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
