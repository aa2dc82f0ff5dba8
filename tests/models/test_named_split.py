"""The door for named backbones: shapes at the cut, normalisation, activation, and its errors."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from attcem.models import ACTIVATIONS, BACKBONES, build_split, split
from attcem.models.units import SMALLEST_STD
from attcem.types import Images


def some_data(shape=(3, 32, 32), n=20, seed=0):
    c, h, w = shape
    x = torch.randint(0, 256, (n, h, w, c), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
    x = (x * torch.linspace(0.3, 1, c)).to(torch.uint8)
    images = Images(x, torch.arange(n) % 10)
    return SimpleNamespace(shape=images.shape, classes=10, private=images)


def small(name="vgg11_bn", **options):
    return split(name, **({"shape": (3, 32, 32), "classes": 10, "width": 0.125} | options))


def test_vgg_latent_shapes():
    data = some_data()
    assert split("vgg11_bn", data=data, cut=4).latent_shape == (128, 8, 8)
    assert split("vgg11_bn", data=data, cut=4, bottleneck=8).latent_shape == (8, 8, 8)
    assert small(cut=4, bottleneck={"channels": 8, "stride": 2}).latent_shape == (8, 4, 4)
    assert small(cut=4, bottleneck={"channels": 8, "stride": 2}).latent_shape == (8, 4, 4)


def test_first_two_convolutions_are_on_the_device():
    encoder = split("vgg11_bn", data=some_data(), cut=4).encoder
    assert [m.out_channels for m in encoder.modules() if isinstance(m, nn.Conv2d)] == [64, 128]


@pytest.mark.parametrize("shape", [(1, 29, 31), (1, 112, 92)])
def test_a_strided_bottleneck_returns_to_any_size(shape):
    model = small(shape=shape, bottleneck={"channels": 2, "stride": 3, "kernel": 5})
    assert model(torch.rand(2, *shape)).shape == (2, 10)


@pytest.mark.parametrize(
    ("shape", "tokens"),
    [((1, 28, 28), 49), ((3, 32, 32), 64), ((3, 64, 64), 256), ((1, 112, 92), 14 * 12), ((3, 224, 224), 196)],
)
def test_tokens_of_patches_cross_and_the_class_has_one_more(shape, tokens):
    assert small("vit", shape=shape).latent_shape == (1 + tokens, 16)
    assert small("vit", shape=shape, bottleneck=4).latent_shape == (1 + tokens, 4)


def test_each_patch_is_a_token_and_knows_its_place():
    encoder, x = small("vit", cut=1, activation="none").encoder, torch.rand(1, 3, 32, 32)
    changed = x.clone()
    changed[:, :, 4:8, 8:12] += 1  # the second row's third patch of eight
    differs = (encoder(x) != encoder(changed)).any(2)[0]
    assert differs.nonzero().flatten().tolist() == [1 + 8 + 2]
    same = encoder(torch.full((1, 3, 32, 32), 0.5))[0, 1:]
    assert len(same.unique(dim=0)) == 64


@pytest.mark.parametrize("name", BACKBONES)
def test_default_cut_is_the_builders(name):
    model = small(name)
    assert model.spec["cut"] == BACKBONES[name].cut
    assert model.latent_shape[1:] in ((8, 8), (16, 16)) or name == "vit"


def test_normalisation_is_measured_on_private_images_inside_the_encoder():
    data = some_data()
    model = split("vgg11_bn", data=data, width=0.125)
    pixels = data.private.pixels()
    normalised = model.encoder.normalise(pixels)
    assert torch.allclose(normalised.mean((0, 2, 3)), torch.zeros(3), atol=1e-5)
    assert torch.allclose(normalised.std((0, 2, 3), correction=0), torch.ones(3), atol=1e-5)
    assert model.encoder[0] is model.encoder.normalise
    assert not any("normalise" in name for name, _ in model.named_parameters())
    assert "encoder.normalise.mean" in model.state_dict()


def test_a_constant_channel_is_only_centred():
    data = some_data()
    data.private.x[..., 1] = 100
    normalise = split("vgg11_bn", data=data, width=0.125).encoder.normalise
    assert normalise.std[1].item() == pytest.approx(SMALLEST_STD)
    assert normalise(data.private.pixels())[:, 1].abs().max() < 1e-4


def test_without_data_the_normalisation_is_neutral():
    normalise = small().encoder.normalise
    assert normalise.mean.flatten().tolist() == [0.5] * 3
    assert normalise.std.flatten().tolist() == [0.25] * 3


RANGES = {"none": (-9e9, 9e9), "relu": (0, 9e9), "sigmoid": (0, 1), "tanh": (-1, 1)}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activation_is_last_and_bounds_the_latent(activation):
    torch.manual_seed(0)
    model = small(activation=activation, bottleneck=8)
    model.encoder.bottleneck.weight.data.mul_(5)
    latent = model.encoder(torch.rand(8, 3, 32, 32))
    low, high = RANGES[activation]
    assert low <= latent.min()
    assert latent.max() <= high
    assert model.encoder[-1] is model.encoder.activation
    outside = {"none": (latent < -1).any(), "relu": (latent > 1).any(), "tanh": (latent < 0).any(), "sigmoid": True}
    assert outside[activation]


def test_sigmoid_is_the_default():
    assert small().spec["activation"] == "sigmoid"
    assert isinstance(small().encoder[-1], nn.Sigmoid)


def test_the_seed_decides_the_weights():
    weights = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        weights.append(small().encoder.units[0][0].weight)
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_building_leaves_statistics_and_mode_untouched():
    model = small(bottleneck=4)
    assert all(module.training for module in model.modules())
    batch_norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    assert all(not norm.running_mean.any() and norm.num_batches_tracked == 0 for norm in batch_norms)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "vgg11bn"}, ["unknown backbone", "'vgg11_bn'"]),
        ({"cut": 0}, ["cut=0", "cut=4", "pool2", "16×8×8", "cut=1"]),
        ({"cut": 14}, ["cut=14", "cut=13", "pool5"]),
        ({"cut": 2.0}, ["cut=2.0", "choose from"]),
        ({"cut": True}, ["cut=True", "choose from"]),
        ({"shape": (3, 27, 32)}, ["27×32", "28×28"]),
        ({"shape": (2, 32, 32)}, ["1 or 3 channels"]),
        ({"shape": (32, 32)}, ["(channels, height, width)"]),
        ({"classes": 1}, ["at least 2"]),
        ({"classes": None}, ["needs data=", "classes="]),
        ({"shape": None}, ["needs data=", "shape="]),
        ({"width": 0}, ["width", "above 0"]),
        ({"width": -1.0}, ["width", "above 0"]),
        ({"width": float("nan")}, ["width", "above 0"]),
        ({"bottleneck": {"chanels": 8}}, ["chanels", "'channels'"]),
        ({"bottleneck": 0}, ["bottleneck channels", "at least 1"]),
        ({"bottleneck": {"stride": 0}}, ["bottleneck stride", "at least 1"]),
        ({"bottleneck": {"kernel": 4}}, ["odd", "5"]),
        ({"bottleneck": {"kernel": 3.0}}, ["bottleneck kernel", "whole number"]),
        ({"bottleneck": True}, ["bottleneck channels", "True"]),
        ({"bottleneck": "8"}, ["bottleneck", "'8'"]),
        ({"name": "vit", "bottleneck": {"stride": 2}}, ["stride=2", "tokens", "leave out stride"]),
        ({"activation": "sigmoyd"}, ["activation", "'sigmoid'"]),
        ({"at": "layer2"}, ["at=", "cut="]),
        ({"example": torch.zeros(1, 3, 32, 32)}, ["example=", "cut="]),
        ({"data": some_data()}, ["shape= and classes=", "data="]),
    ],
    ids=str,
)
def test_errors_name_the_fix(options, words):
    with pytest.raises(ValueError) as error:
        small(**options)
    for word in words:
        assert word in str(error.value)


def test_errors_of_empty_data_and_wrong_model():
    with pytest.raises(ValueError, match="no images"):
        split("vgg11_bn", data=some_data(n=0), width=0.125)
    with pytest.raises(ValueError, match=r"name of a backbone or an nn\.Module"):
        split(3)


def test_a_bad_spec_says_what_is_wrong():
    spec = small().spec
    with pytest.raises(ValueError, match="lacks width"):
        build_split({key: value for key, value in spec.items() if key != "width"})
    with pytest.raises(ValueError, match="'width'"):
        build_split(spec | {"widht": 1})


def test_a_backbone_of_ones_own_needs_one_line(monkeypatch):
    def mine(shape, classes, width):
        return nn.Sequential(nn.Conv2d(shape[0], 4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(classes))

    monkeypatch.setitem(BACKBONES, "mine", mine)
    assert split("mine", shape=(1, 28, 28), classes=3, cut=2).latent_shape == (4, 26, 26)
    with pytest.raises(ValueError, match="give cut="):
        split("mine", shape=(1, 28, 28), classes=3)
