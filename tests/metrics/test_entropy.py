"""The entropy of images: met on Gaussian ones, less in clusters, the same in tiles."""

from __future__ import annotations

import math

import pytest
import torch

from attcem.metrics.bounds import filled_floor
from attcem.metrics.entropy import image_prior, tile_size, tiles
from tests.metrics.channel import Channel


def test_entropy_is_met_on_gaussian_images_and_exceeded_on_others():
    channel = Channel(4, d=16)
    assert image_prior(channel.images()).total == pytest.approx(channel.entropy, abs=0.5)
    prior = image_prior(torch.rand(4000, 1, 4, 4))
    assert 0 < prior.total < 16 * 0.5 * math.log(2 * math.pi * math.e / 12) + 0.2  # of uniform pixels it is 0
    assert "over-estimate" in prior.how


def test_images_in_clusters_have_less_entropy_than_one_gaussian_sees():
    centres = torch.rand(4, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    x = centres[torch.arange(4000) % 4] + 0.02 * torch.randn(4000, 1, 4, 4)
    truth = math.log(4) + 16 * 0.5 * math.log(2 * math.pi * math.e * 0.02**2)
    prior = image_prior(x)
    assert len(prior.share) > 1
    assert prior.total == pytest.approx(truth, abs=2.0)
    one_gaussian = 0.5 * torch.logdet(2 * math.pi * math.e * x.flatten(1).double().T.cov()).item()
    assert one_gaussian > truth + 5
    assert filled_floor(0.0, prior.entropy, prior.share) == pytest.approx(0.02**2, rel=0.15)


def test_large_images_are_cut_into_tiles_that_fit():
    assert tile_size(3, 32, 32) == (32, 32)
    assert tile_size(3, 64, 64) == (16, 16)
    assert tile_size(1, 112, 92) == (16, 46)
    assert tile_size(3, 97, 89) == (97, 1)
    x = torch.arange(2 * 2 * 4 * 6).reshape(2, 2, 4, 6).float()
    cut = tiles(x, (2, 3))
    assert cut.shape == (2, 4, 12)
    torch.testing.assert_close(cut[1, 3].reshape(2, 2, 3), x[1, :, 2:, 3:])


def test_tiles_of_independent_pixels_have_the_entropy_of_the_whole(monkeypatch):
    x = 0.5 + 0.1 * torch.randn(3000, 1, 4, 6)
    whole = image_prior(x)
    monkeypatch.setattr("attcem.metrics.entropy.WHOLE", 10)
    monkeypatch.setattr("attcem.metrics.entropy.TILE", 8)
    cut = image_prior(x)
    assert (cut.tile, len(cut.axes)) == ((4, 2), 3) and "3 tiles of 4×2" in cut.how
    assert cut.total == pytest.approx(whole.total, abs=0.3)
    torch.testing.assert_close(cut.along(x).square().sum(1).float(), x.square().sum((1, 2, 3)), rtol=1e-5, atol=0)
