"""The class-aware decoder starts from what the cloud's word is worth, and only adds to it."""

from __future__ import annotations

import copy

import pytest
import torch

from attcem.attacks.class_aware import ClassMeans, class_residuals
from attcem.attacks.inverter import Inverter
from attcem.types import Images

CLASSES = 4


@pytest.fixture
def images() -> Images:
    return Images(torch.randint(0, 256, (40, 8, 8, 3), dtype=torch.uint8), torch.arange(40) % (CLASSES - 1))


def aware(images: Images, latents: torch.Tensor) -> Inverter:
    inverter = Inverter(latents, images.pixels().mean(0), 8, 1)
    inverter.terms.append(ClassMeans(lambda z: 50 * z[:, :CLASSES, 0, 0], class_residuals(images, CLASSES)))
    return inverter


def test_residuals_are_class_means_less_the_mean_and_zero_for_a_class_nobody_has_seen(images):
    found, pixels = class_residuals(images, CLASSES), images.pixels()
    for label in range(CLASSES - 1):
        mine = torch.stack([x for x, y in zip(pixels, images.y, strict=True) if y == label])
        torch.testing.assert_close(found[label], mine.mean(0) - pixels.mean(0))
    assert not found[CLASSES - 1].any()


def test_a_latent_that_tells_only_the_class_is_shown_as_the_class_mean(images):
    latents = torch.eye(CLASSES)[images.y][..., None, None].expand(-1, -1, 2, 2).contiguous()
    network = aware(images, latents)
    network.solve_linear([(latents, images.pixels())])
    best = class_residuals(images, CLASSES)[images.y] + images.pixels().mean(0)
    error = (network(latents) - images.pixels()).square().mean()
    assert error <= (best - images.pixels()).square().mean() + 1e-6


def test_residuals_learn_and_the_cloud_does_not(images):
    latents = torch.randn(40, CLASSES, 2, 2, requires_grad=True)
    network = aware(images, latents.detach())
    network(latents).square().sum().backward()
    residuals = network.terms[0].residuals
    assert residuals.grad is not None and residuals.grad.any()
    assert any(parameter is residuals for parameter in network.solved())


def test_a_copy_guesses_the_same(images):
    latents = torch.randn(4, CLASSES, 2, 2)
    network = aware(images, latents)
    assert torch.equal(copy.deepcopy(network)(latents), network(latents))
