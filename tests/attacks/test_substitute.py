from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attcem.attacks import BASELINES
from attcem.attacks.decoder import Decoder
from attcem.attacks.grid import identity
from attcem.attacks.likeness import wasserstein
from attcem.attacks.observed import Observed, as_picture
from attcem.attacks.substitute import MadeUpOracle, Network, Substitute, made_up
from attcem.defences import Noise, Undefended
from attcem.models import Split
from attcem.threat import build_view
from attcem.types import Workbook
from tests.attacks.conftest import attack_on, view_of
from tests.probes import Coarse, Nothing, Pixels, split_with

pytestmark = pytest.mark.usefixtures("narrow")
BRIEF = Substitute().brief()
TINY = Substitute(Decoder(8, 1, cycle=10, doublings=0), Decoder(8, 1, cycle=4, doublings=0), channels=8, steps=4)


@pytest.mark.parametrize("guard", [Undefended(), Noise(0.1)])
def test_a_constant_encoder_leaves_the_mean_image(guard, pictures):
    view, truth = view_of(Nothing(), pictures, guard, threat="black_box")
    assert torch.equal(BRIEF(view).images, BASELINES["mean_image"](view, truth.y))


@pytest.mark.slow
def test_an_encoder_that_was_never_queried_is_inverted(pictures):
    """A picture four times smaller, and a cloud that tells clothes from it: what serves the cloud must be that."""
    victim = split_with(Coarse())
    z, labels = Coarse()(pictures.public.pixels()).flatten(1), F.one_hot(pictures.public.y, 10).float()
    away = z - z.mean(0)
    weight = 5 * torch.linalg.solve(away.T @ away + 10 * torch.eye(49), away.T @ labels).T
    with torch.no_grad():
        victim.decoder[1].weight.copy_(weight)
        victim.decoder[1].bias.copy_(-weight @ z.mean(0))
    view, truth = build_view(victim, Noise(0.05), pictures, images=100, threat="black_box")
    _, mse, mean = attack_on(view, truth, replace(BRIEF, channels=8, steps=80))
    assert mse < 0.6 * mean


def test_neither_oracle_nor_device_is_used(network, small):
    view, _ = build_view(network, Noise(0.05), replace(small, public=small.public[:100]), images=60, threat="white_box")
    blind = replace(view, oracle=None, device=None, workbook=Workbook())
    assert TINY.needs == {"public", "labels", "logits"}
    found = TINY(view, seed=0).images
    assert torch.equal(found, TINY(blind, seed=0).images) and not torch.equal(found, TINY(view, seed=1).images)
    assert all(p.grad is None for p in network.parameters()), "the victim is left as it was"
    assert view.workbook == Workbook(), "what was learned about a substitute is not about the device"


@pytest.mark.parametrize("sigma", [0.0, 0.3])
def test_the_noise_is_measured_from_a_second_send(sigma, pictures):
    view, _ = view_of(Pixels(), pictures, Noise(sigma), threat="black_box")
    noise = Observed.of(view).noise
    assert noise.shape == (1, 28, 28)
    torch.testing.assert_close(noise, torch.full_like(noise, sigma), rtol=0.05, atol=1e-6)


@pytest.mark.parametrize("squash", [torch.sigmoid, torch.tanh, torch.relu, identity])
@pytest.mark.parametrize("sigma", [0.0, 0.1])
def test_the_activation_is_guessed_from_the_range(squash, sigma):
    latents = squash(3 * torch.randn(200, 4, 7, 7))
    seen = Observed(latents + sigma * torch.randn_like(latents), torch.full((4, 7, 7), sigma), torch.zeros(200).long())
    assert seen.squash is squash


def test_latents_are_drawn_of_the_class_asked_for_where_there_are_any():
    seen = Observed(torch.arange(6.0)[:, None], torch.zeros(1), torch.tensor([0, 0, 1, 1, 1, 2]))
    assert seen.like(torch.tensor([2, 2, 2])).flatten().tolist() == [5, 5, 5]
    assert seen.like(torch.full((50,), 1)).unique().tolist() == [2, 3, 4]
    assert len(seen.like(torch.full((200,), 9)).unique()) == 6


def test_wasserstein_distance_pairs_sorted_values_within_classes():
    a, classes = torch.randn(40, 3, 2), torch.arange(40) % 4
    assert wasserstein(a, a + 0.5, classes).item() == pytest.approx(0.25, rel=1e-3)
    swapped = a[torch.arange(40).roll(4)]  # the same class at every place
    assert wasserstein(a, swapped, classes) < 1e-10
    shifted = a + 5 * classes[:, None, None]
    assert wasserstein(shifted, shifted[torch.arange(40).roll(1)], classes) > 1
    one = torch.zeros_like(classes)
    assert wasserstein(shifted, shifted[torch.arange(40).roll(1)], one) < 1e-8


class Folded(nn.Module):
    def __init__(self, stretch=1.0, offset=0.0):
        super().__init__()
        self.stretch, self.offset = stretch, offset

    def forward(self, x):
        return self.stretch * F.pixel_unshuffle(x, 2) + self.offset


class Mixed(nn.Module):
    def forward(self, x):
        mixing = torch.linalg.qr(torch.randn(784, 784, generator=torch.Generator().manual_seed(0))).Q
        return (x.flatten(1) @ mixing).reshape(x.shape)


@pytest.mark.parametrize("encoder", [Pixels(), Folded(), Folded(3.0, -1.0)])
@pytest.mark.parametrize("sigma", [0.0, 0.1])
def test_a_latent_that_is_a_picture_is_taken_for_one(encoder, sigma, pictures):
    view, truth = view_of(encoder, pictures, Noise(sigma), threat="black_box")
    guessed = as_picture(view, Observed.of(view))
    x = truth.pixels()
    assert (guessed(x) - encoder(x)).square().mean() < 0.02 * encoder(x).var()


@pytest.mark.parametrize("encoder", [Mixed(), Coarse(), Nothing()])
def test_a_latent_that_is_none_is_not(encoder, pictures):
    view, _ = view_of(encoder, pictures, threat="black_box")
    assert as_picture(view, Observed.of(view)) is None


@pytest.mark.parametrize("latent", [(8, 7, 7), (3, 28, 28), (5, 10, 9), (2, 40, 40), (6, 2, 2), (50,), (5, 7)])
def test_a_substitute_sends_latents_of_any_shape(latent):
    seen = Observed(torch.randn(10, *latent), torch.zeros(latent), torch.zeros(10).long())
    assert Network((1, 28, 28), seen, 8)(torch.rand(4, 1, 28, 28)).shape == (4, *latent)


def test_a_made_up_oracle_adds_the_noise_afresh():
    x, index = torch.rand(600, 1, 4, 4), torch.arange(0, 600, 2)
    oracle = MadeUpOracle(lambda x: -x, torch.full((1, 4, 4), 0.5))
    recording = oracle.record(x.split(200))
    for repeats, expected in ((1, 0.5), (4, 0.25)):
        assert (recording(index, repeats) + x[index]).std().item() == pytest.approx(expected, rel=0.05)
        assert (oracle(x, repeats) + x).std().item() == pytest.approx(expected, rel=0.05)
    assert not torch.equal(recording(index), recording(index))


class Random(nn.Module):
    """Many features of every neighbourhood; `off` is by how much its weights differ from those of another."""

    def __init__(self, off=0.0):
        super().__init__()
        right, wrong = torch.randn(2, 17, 1, 4, 4, generator=torch.Generator().manual_seed(0))
        self.register_buffer("weight", (right + off * wrong) / 4)

    def forward(self, x):
        return F.conv2d(x - 0.3, self.weight, stride=4)


@pytest.mark.slow
def test_an_inverter_distrusts_a_substitute_that_is_not_the_device_and_gains_by_it(pictures):
    view, truth = view_of(Random(), replace(pictures, public=pictures.public[:500]), threat="black_box", images=100)
    observed, attack = Observed.of(view), replace(BRIEF, trial=Decoder(16, 1, cycle=60, doublings=0, batch=16))

    def error(encoder, distrust):
        inverter = attack.trial.trained(made_up(view, observed, encoder, distrust), 0)
        return (inverter.invert(view.targets) - truth.pixels()).square().mean().item()

    assert attack.distrust(view, observed, Random(), 0) == 0
    wrong = Random(off=0.2)
    chosen = attack.distrust(view, observed, wrong, 0)
    assert chosen > 0 and error(wrong, chosen) < 0.8 * error(wrong, 0.0)


def test_distrust_adds_to_the_noise_in_units_of_a_channels_deviation(pictures):
    view, _ = view_of(Random(), pictures, Noise(0.3), threat="black_box")
    observed = Observed.of(view)
    expected = (observed.noise**2 + (0.5 * view.targets.std((0, 2, 3), correction=0))[:, None, None] ** 2).sqrt()
    torch.testing.assert_close(made_up(view, observed, Random(), 0.5).oracle.noise, expected)
    torch.testing.assert_close(made_up(view, observed, Random(), 0.0).oracle.noise, observed.noise)


def test_a_split_with_a_flat_latent_is_attacked_too(thumbnails):
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(196, 20))
    victim = Split(encoder, nn.Linear(20, 10), latent_shape=(20,), classes=10)
    view, truth = build_view(victim, Noise(0.1), thumbnails, images=30, threat="black_box")
    assert TINY(view).images.shape == truth.pixels().shape
