"""The door for modules of one's own: what it cuts is the module itself, in two halves."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attcem.models import split
from tests.models.own import Residual, Scales, images, plain


@pytest.mark.parametrize("at", ["0", "1", "2", "3", "4"])
def test_a_plain_network_cuts_anywhere(at):
    module, x = plain().eval(), images()
    model = split(module, at=at, example=x)
    latent = module[: int(at) + 1](x.clone())
    assert torch.equal(model.encoder(x), latent)
    assert torch.equal(model(x), module(x))
    assert model.latent_shape == latent.shape[1:]
    assert model.classes == 5
    assert model.spec is None


@pytest.mark.parametrize("at", ["stem", "layer1", "layer1.0", "layer2.0", "layer2"])
def test_containers_and_leaves_of_a_residual_network(at):
    module, x = Residual().eval(), images()
    seen = []
    module.get_submodule(at).register_forward_hook(lambda _, __, output: seen.append(output.clone()))
    expected = module(x)
    model = split(module, at=at, example=x)
    assert torch.equal(model.encoder(x), seen[0])
    assert torch.equal(model(x), expected)
    assert torch.equal(model(images(5)), module(images(5)))


def test_a_module_without_state_may_serve_both_sides():
    relu, x = nn.ReLU(), images()
    module = nn.Sequential(nn.Conv2d(3, 3, 1), relu, nn.Conv2d(3, 3, 1), relu, nn.Flatten(), nn.Linear(192, 5))
    assert torch.equal(split(module, at="2", example=x).eval()(x), module.eval()(x))


@pytest.mark.parametrize("names", [("first", "second"), ("mean", "first"), ("mean", "mean")], ids=str)
def test_what_forward_reads_is_fetched_on_its_side(names):
    module, x = Scales(*names).eval(), images()
    attributes = set(vars(module))
    model = split(module, at="layer", example=x)
    assert torch.equal(model(x), module(x))
    assert not {id(p) for p in model.encoder.parameters()} & {id(p) for p in model.decoder.parameters()}
    assert {id(p) for p in model.parameters()} <= {id(p) for p in module.parameters()}
    storages = [tensor.data_ptr() for tensor in model.state_dict().values()]
    assert len(storages) == len(set(storages))
    assert set(vars(module)) == attributes


@pytest.mark.parametrize("training", [True, False])
def test_mode_example_and_statistics_stay(training):
    module, x = nn.Sequential(nn.ReLU(inplace=True), *plain()).train(training), images() - 0.5
    module[2].eval()
    modes, kept, state = [m.training for m in module.modules()], x.clone(), copy.deepcopy(module.state_dict())
    model = split(module, at="3", example=x)
    assert [m.training for m in module.modules()] == modes
    assert torch.equal(x, kept)
    assert all(torch.equal(value, state[key]) for key, value in module.state_dict().items())
    assert model.training is model.encoder.training is model.decoder.training is training


@pytest.mark.parametrize("layer", [nn.ReLU(inplace=True), nn.Dropout(0.5, inplace=True)], ids=str)
def test_the_decoder_never_writes_into_the_latent(layer):
    """Otherwise a penalty on the clean latent would see what the cloud made of it."""
    module = nn.Sequential(nn.Conv2d(3, 4, 3), layer, nn.Flatten(), nn.Linear(144, 5))
    model = split(module, at="0", example=images()).train()
    latent = model.encoder(images()).detach().requires_grad_()
    kept = latent.detach().clone()
    model.decoder(latent).sum().backward()
    assert torch.equal(latent.detach(), kept)
    assert latent.grad is not None


def test_training_the_split_trains_the_module():
    module, x = Residual(), images(4)
    model = split(module, at="layer1", example=x)
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    F.cross_entropy(model(x), torch.arange(4)).backward()
    optimiser.step()
    changed = {name for name, p in module.named_parameters() if not torch.equal(p, before[name])}
    assert {"stem.weight", "layer1.0.conv1.weight", "layer2.1.conv2.weight", "fc.weight"} <= changed
    assert not any(name.startswith("unused") for name in changed)
    assert torch.equal(model.eval()(x), module.eval()(x))


def test_a_custom_split_copies_and_keeps_readable_state():
    model = split(Residual(), at="layer1", example=images()).eval()
    assert "encoder.layer1.0.conv1.weight" in model.state_dict()
    assert "decoder.layer2.0.bn1.running_mean" in model.state_dict()
    twin = copy.deepcopy(model)
    assert torch.equal(twin(images()), model(images()))
    twin.encoder.stem.weight.data.zero_()
    assert not torch.equal(twin(images()), model(images()))
