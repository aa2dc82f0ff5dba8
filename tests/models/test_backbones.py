"""The contract of a backbone, run over the whole table: a new line in it is tested at once."""

import copy
import json

import pytest
import torch
from torch import nn

from attcem.models import BACKBONES, build_split, split

SHAPES = [(1, 28, 28), (1, 29, 31), (3, 32, 32), (3, 64, 64), (1, 112, 92)]
WIDTH = 0.125


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", BACKBONES)
def test_logits_latent_and_gradients(name, shape):
    model = split(name, shape=shape, classes=7, width=WIDTH, bottleneck=4)
    x = torch.rand(3, *shape)
    latent = model.encoder(x)
    logits = model.decoder(latent)
    assert latent.shape == (3, *model.latent_shape)
    assert logits.shape == (3, 7)
    assert logits.isfinite().all()
    nn.functional.cross_entropy(logits, torch.tensor([0, 1, 2])).backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name


@pytest.mark.parametrize("name", BACKBONES)
def test_the_loss_depends_on_every_layer(name):
    model = split(name, shape=(3, 32, 32), classes=7, width=0.25, activation="tanh")
    model(torch.rand(4, 3, 32, 32)).square().sum().backward()
    dead = [key for key, p in model.named_parameters() if p.dim() > 1 and not p.grad.any()]
    assert dead == []


@pytest.mark.parametrize("name", BACKBONES)
def test_every_cut_composes_to_the_same_shapes(name):
    units = BACKBONES[name]((1, 28, 28), 5, WIDTH)
    x = torch.rand(2, 1, 28, 28)
    for cut in range(1, len(units)):
        model = split(name, shape=(1, 28, 28), classes=5, width=WIDTH, cut=cut).eval()
        latent = model.encoder(x)
        assert latent.shape[1:] == model.latent_shape, cut
        assert torch.equal(model(x), model.decoder(latent)), cut
        assert model(x).shape == (2, 5), cut
        assert len(model.encoder.units) == cut
        assert len(model.decoder.units) == len(units) - cut


@pytest.mark.parametrize("name", BACKBONES)
def test_rebuilds_from_json_and_state(name):
    model = split(name, shape=(3, 32, 32), classes=4, width=WIDTH, bottleneck={"channels": 3, "kernel": 1})
    model.encoder.normalise.mean.fill_(0.3)
    model(torch.rand(4, 3, 32, 32))  # moves the running statistics off their start
    again = build_split(json.loads(json.dumps(model.spec)))
    again.load_state_dict(model.state_dict())
    x = torch.rand(2, 3, 32, 32)
    assert torch.equal(again.eval()(x), model.eval()(x))
    assert again.spec == model.spec
    assert again.latent_shape == model.latent_shape
    assert again.classes == 4
    assert all(isinstance(value, torch.Tensor) for value in model.state_dict().values())


@pytest.mark.parametrize("name", BACKBONES)
def test_encoders_can_be_differentiated_twice(name):
    """As a penalty on the encoder's Jacobian asks for."""
    encoder, x = split(name, shape=(3, 32, 32), classes=4, width=WIDTH).encoder, torch.rand(2, 3, 32, 32)
    (slope,) = torch.autograd.grad(encoder(x.requires_grad_()).sum(), x, create_graph=True)
    slope.square().sum().backward()
    assert any(p.grad is not None and p.grad.any() for p in encoder.parameters())


@pytest.mark.parametrize("name", BACKBONES)
def test_halves_share_no_parameter(name):
    model = split(name, shape=(3, 32, 32), classes=4, width=WIDTH, bottleneck=3)
    encoder, decoder = ({id(p) for p in half.parameters()} for half in (model.encoder, model.decoder))
    assert encoder
    assert decoder
    assert not encoder & decoder


def convolutions(network):
    return [module for module in network.modules() if isinstance(module, nn.Conv2d)]


@pytest.mark.parametrize("name", BACKBONES)
def test_width_multiplies_channels(name):
    full, half = (convolutions(BACKBONES[name]((3, 32, 32), 10, width)) for width in (1.0, 0.5))
    for wide, narrow in zip(full, half, strict=True):
        assert narrow.out_channels == pytest.approx(wide.out_channels / 2, rel=0.35)


@pytest.mark.parametrize("name", BACKBONES)
def test_a_tiny_width_leaves_at_least_one_channel(name):
    units = BACKBONES[name]((1, 28, 28), 3, 1e-6).eval()
    assert min(conv.out_channels for conv in convolutions(units)) >= 1
    assert units(torch.rand(2, 1, 28, 28)).shape == (2, 3)


@pytest.mark.parametrize("name", BACKBONES)
def test_initialisation_keeps_the_signal(name):
    """Neither vanishing nor exploding: the features before the head vary between images of noise."""
    units = BACKBONES[name]((3, 32, 32), 10, 0.5)
    features = units[:-1](torch.randn(8, 3, 32, 32))
    assert 1e-2 < features.std() < 1e2


@pytest.mark.parametrize("name", BACKBONES)
def test_convolutions_start_at_the_scale_of_their_fan_out(name):
    for conv in convolutions(BACKBONES[name]((3, 32, 32), 10, 1.0)):
        if conv.weight.numel() > 2000:
            fan_out = conv.out_channels * conv.kernel_size[0] ** 2
            assert conv.weight.std().item() == pytest.approx((2 / fan_out) ** 0.5, rel=0.1)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("vgg11_bn", 9_228_362), ("resnet20", 272_474), ("resnet18", 11_173_962), ("mobilenetv2", 2_236_682)],
)
def test_size_is_the_published_one(name, parameters):
    assert sum(p.numel() for p in BACKBONES[name]((3, 32, 32), 10, 1.0).parameters()) == parameters


def test_learns_and_copies():
    """A few steps on four images lower the loss, and a deep copy stays behind."""
    model = split("vgg11_bn", shape=(1, 28, 28), classes=4, width=WIDTH, bottleneck=4)
    before = copy.deepcopy(model)
    x, y = torch.rand(4, 1, 28, 28), torch.arange(4)
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    losses = []
    for _ in range(12):
        loss = nn.functional.cross_entropy(model(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    assert not torch.equal(before.encoder.bottleneck.weight, model.encoder.bottleneck.weight)
