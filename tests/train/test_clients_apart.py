"""What stays at home: no image, latent or memory of one client is in reach of another."""

import dataclasses
import hashlib

import pytest
import torch
from torch import nn

from attcem.data.clients import deal_clients
from attcem.defences import Defence, Noise, create_defence
from attcem.train import honesty
from attcem.train.averaging import kept
from attcem.types import Images
from tests.train.federated import SYNCS, UNLIKE, all_epochs, few_of, network, run, same


@pytest.fixture(scope="module")
def few(fashion):
    return few_of(fashion)


@pytest.fixture(autouse=True)
def looked_at(monkeypatch):
    """The latents on which a surrogate would be tested for honesty: that takes long, and is tested elsewhere."""
    found = []
    monkeypatch.setattr(honesty, "surrogate_only", lambda surrogate, latents: found.extend(latents) or 0.0)
    return found


def rows(images: torch.Tensor) -> set[str]:
    return {hashlib.sha256(row.contiguous().numpy().tobytes()).hexdigest() for row in images}


class Remembering(Defence):
    """Keeps every image and latent that it is shown, wherever it is shown one."""

    def __init__(self):
        super().__init__()
        self.images, self.latents = [], []

    def keep(self, batch):
        self.images.append((batch.x.detach().permute(0, 2, 3, 1) * 255).round().to(torch.uint8))
        self.latents.append(batch.z.detach().clone())

    def penalty(self, batch):
        self.keep(batch)
        return batch.z.mean()

    def observe(self, batch):
        self.keep(batch)

    def review(self, batches):
        for batch in batches:
            self.keep(batch)


def reachable(thing, stop, found=None):
    """Everything that can be reached from a thing through attributes, entries, closures and the owners of methods."""
    found = {} if found is None else found
    if id(thing) in found or id(thing) in stop or isinstance(thing, str | bytes | int | float | type(None) | type):
        return found
    found[id(thing)] = thing
    inner = []
    if isinstance(thing, dict):
        inner = [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset):
        inner = list(thing)
    elif isinstance(thing, torch.Tensor):
        inner = [thing.grad] if thing.is_leaf else []
    elif callable(thing) and hasattr(thing, "__closure__"):
        inner = [cell.cell_contents for cell in thing.__closure__ or ()]
    if hasattr(thing, "__self__"):
        inner.append(thing.__self__)
    inner += list(getattr(thing, "__dict__", {}).values())
    for each in inner:
        reachable(each, stop, found)
    return found


@pytest.mark.parametrize("sync", SYNCS)
def test_no_image_or_latent_of_a_client_is_in_reach_of_another(few, sync):
    clients = dataclasses.replace(UNLIKE, sync=sync)
    training = all_epochs(run(few, Noise(0.1) + Remembering(), clients, epochs=2, crop=0, flip=False))
    owned = [rows(images.x) for images in deal_clients(few, clients)]
    assert not owned[0] & owned[1] and not owned[0] & owned[2] and not owned[1] & owned[2]
    latents = [rows(torch.cat(client.guard.links[-1].latents)) for client in training.learners]
    for number, client in enumerate(training.learners):
        everything = reachable(client, stop={id(client.model.decoder)})
        tensors = [thing for thing in everything.values() if isinstance(thing, torch.Tensor)]
        pictures = set().union(*(rows(t) for t in tensors if t.dtype == torch.uint8 and t.ndim == 4))
        assert pictures == owned[number], "it holds all of its own images, and none of anybody else's"
        held = set().union(*(rows(t) for t in tensors if t.shape[1:] == training.model.latent_shape))
        for other in range(3):
            assert latents[other] <= held if other == number else not latents[other] & held
    deployed = reachable(training.guard, stop=set())
    pictures = [t for t in deployed.values() if isinstance(t, torch.Tensor) and t.dtype == torch.uint8]
    assert not set().union(*map(rows, pictures)) & set().union(*owned)


def test_the_walk_would_find_an_image_that_is_hidden_in_a_closure_or_a_bound_method():
    hidden = torch.zeros(1, 2, 2, 1, dtype=torch.uint8)

    class Holder:
        def __init__(self):
            self.inside = {"deep": [hidden]}

        def method(self):
            pass

    client = nn.Identity()
    client.register_forward_hook(lambda *_: hidden)
    assert id(hidden) in reachable(client, set())
    client = nn.Identity()
    client.call = Holder().method
    assert id(hidden) in reachable(client, set())
    assert id(hidden) not in reachable(client, {id(client.call.__self__)})


KEEPING = {
    "bound": {"memory": 0.9, "assign": "slot", "tokens": "spatial"},
    "hybrid": {"warmup": 0},
    "arl": {"channels": 4, "blocks": 1},
    "gmm": {},
}


@pytest.mark.parametrize("name", KEEPING)
def test_what_a_client_keeps_depends_on_no_image_of_another(few, name):
    """With weights that stand still, other people's images have no way in but a leak."""

    def kept_by(changed):
        training = run(
            few, Noise(0.2) + create_defence(name, **KEEPING[name]), model=network(few, "vgg11"), epochs=2, lr=1e-60
        )
        images = training.learners[changed].images
        training.learners[changed].loader.x = torch.flip(images.x, [1])
        training.learners[changed].images = Images(torch.flip(images.x, [1]), images.y)
        all_epochs(training)
        return [{key: t.clone() for key, t in kept(client.guard).items()} for client in training.learners]

    by_zero, by_one = kept_by(0), kept_by(1)
    assert by_zero[2] and same(by_zero[2], by_one[2]), "client 2 noticed whose images had changed"
    assert not same(by_zero[0], by_one[0]) and not same(by_zero[1], by_one[1])


def test_a_surrogate_is_tested_for_honesty_on_the_images_of_one_client(few, looked_at):
    training = all_epochs(run(few, Noise(0.2) + create_defence("bound"), crop=0, flip=False))
    seen = rows((torch.cat([batch.x for batch in looked_at]).permute(0, 2, 3, 1) * 255).round().to(torch.uint8))
    largest = max((images for images in deal_clients(few, UNLIKE)), key=len)
    assert seen == rows(largest.x) and training.state.surrogate_only == {"bound": 0.0}
