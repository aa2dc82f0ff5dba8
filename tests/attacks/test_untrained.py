"""Untrained generators: they start at the mean image, keep to their own target, and stop where public images say."""

from dataclasses import replace
from itertools import islice

import pytest
import torch

from attcem.attacks.match import Match
from attcem.attacks.untrained import Generators, Untrained, averages
from attcem.defences import Noise
from tests.attacks.conftest import attack_on, view_of
from tests.probes import Nothing, Pixels


def attack_with(attack, encoder, data, guard=None):
    return attack_on(*view_of(encoder, data, guard, threat="white_box"), attack)


def test_a_constant_encoder_leaves_the_mean_image(pictures):
    found, _, _ = attack_with(replace(Untrained().brief(), steps=5), Nothing(), pictures)
    mean = pictures.public.pixels().mean(0).expand_as(found.images)
    torch.testing.assert_close(found.images, mean)
    assert not found.flags


def test_noise_that_drowns_the_latent_leaves_the_mean_image(pictures):
    _, mse, mean = attack_with(replace(Untrained().brief(), steps=40, tuning=16), Pixels(), pictures, Noise(1000))
    assert 0.97 * mean < mse < 1.2 * mean


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 28, 28), (2, 5, 11), (1, 3, 3)])
def test_generators_start_at_the_mean_image_of_any_shape(shape):
    mean = torch.rand(shape)
    torch.testing.assert_close(Generators(2, mean, 4)(), mean.expand(2, *shape))


def test_a_target_moves_its_own_generator_only():
    generators = Generators(3, torch.rand(1, 8, 8), 4)
    torch.nn.init.normal_(generators.out.weight)
    generators()[1].square().sum().backward()
    for parameter in generators.parameters():
        first, second, third = parameter.grad.chunk(3)
        assert not first.any() and second.any() and not third.any()


def test_the_average_follows_the_generators_slowly(pictures):
    view, _ = view_of(Pixels(), pictures, threat="white_box", images=2)
    mean = pictures.public.pixels().mean(0)
    runs = [list(islice(averages(Match(view), view.targets, mean, 4, lr), 3)) for lr in (0.0, 0.1)]
    torch.testing.assert_close(torch.stack(runs[0]), mean.expand(3, 2, *mean.shape))
    first, second, third = runs[1]
    torch.testing.assert_close(second, first)  # after one step the generators have moved, their outputs are seen next
    moved = (third - first).abs().max()
    assert 0 < moved < 0.05


def test_stops_where_public_images_are_best_and_says_when_that_is_the_end(thumbnails):
    noisy, _, _ = attack_with(replace(Untrained().brief(), steps=150, tuning=8), Pixels(), thumbnails, Noise(0.5))
    assert not noisy.flags and min(noisy.curve) < 0.5 * noisy.curve[0]
    short, _, _ = attack_with(replace(Untrained().brief(), steps=10), Pixels(), thumbnails)
    assert "more steps" in short.flags[0]


def test_needs_the_weights(pictures):
    view, _ = view_of(Pixels(), pictures, threat="query", images=4)
    with pytest.raises(ValueError, match="white_box"):
        Untrained().brief()(view)
