from dataclasses import replace

import pytest
import torch

from attcem.attacks.decoder import Decoder
from attcem.attacks.generative import Generative
from attcem.attacks.image_model import VAE, Prior, negative_bound
from attcem.attacks.pairs import hold_out
from attcem.defences import Noise, Undefended
from attcem.metrics import METRICS
from attcem.threat import build_view
from attcem.types import Workbook
from tests.attacks.conftest import view_of
from tests.probes import Pixels

BRIEF = Generative().brief()
QUICK = Prior(dimensions=16, channels=8, steps=10)
TINY = Generative(images=3, steps=5, tuning=4, prior=QUICK, start=replace(Decoder(8, 1), cycle=10, doublings=0))


def test_needs_the_devices_weights(thumbnails):
    assert BRIEF.needs == {"public", "queries", "weights", "gradients"}
    view, _ = view_of(Pixels(), thumbnails, threat="query", images=3)
    with pytest.raises(ValueError, match="white_box"):
        TINY(view)


def test_the_image_model_reconstructs_unseen_images_better_than_the_mean_image(thumbnails):
    own, held_out = hold_out(thumbnails.public, 0)
    x = held_out.pixels()
    mean = (own.pixels().mean(0) - x).square().mean()
    model = QUICK.train(own, torch.device("cpu"), 0, False)
    assert (model.generate(model.encode(x)[0]) - x).square().mean() < 0.5 * mean


def test_the_image_model_starts_as_probabilistic_pca():
    """Shrunk projections on the axes: Σ_k (1 − s²/λ_k) u_k u_kᵀ (x − mean)."""
    x = torch.randn(400, 1, 6, 5) * torch.linspace(0.05, 1, 30).reshape(1, 6, 5) + 0.5
    flat = (x - x.mean(0)).flatten(1).double()
    variance, axes = torch.linalg.eigh(flat.T @ flat / len(flat))
    left = variance[:-8].mean()
    expected = flat @ axes[:, -8:] * (1 - left / variance[-8:]) @ axes[:, -8:].T
    model = VAE(x, 8, 8)
    found = (model.generate(model.encode(x)[0]) - x.mean(0)).flatten(1)
    assert (found - expected).square().mean() < 1e-3 * expected.square().mean()


def test_training_raises_the_bound_on_unseen_images(thumbnails):
    own, held_out = hold_out(thumbnails.public, 0)
    x = held_out.pixels()

    def bound(steps):
        model = Prior(dimensions=16, channels=16, steps=steps).train(own, torch.device("cpu"), 0, False)
        centre, spread = model.encode(x)
        torch.manual_seed(0)
        w = centre + (spread / 2).exp() * torch.randn_like(centre)
        return -negative_bound(x, model.generate(w), centre, spread).item()

    assert bound(60) > bound(0)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 30, 33)])
def test_the_image_model_paints_pictures_of_any_shape(shape):
    x = torch.rand(20, *shape)
    model = VAE(x, 4, 8)
    assert model.encode(x)[0].shape == (20, 4) and model.generate(torch.zeros(2, 4)).shape == (2, *shape)


def test_the_image_model_is_trained_once_and_kept_in_the_workbook(thumbnails):
    view, _ = view_of(Pixels(), thumbnails, threat="white_box")
    own, _ = hold_out(view.public, 0)
    assert QUICK.trained(view, own, 0) is QUICK.trained(view, own, 0)
    assert QUICK.trained(view, own, 0) is not QUICK.trained(view, own, 1)


def test_the_same_seed_gives_the_same_guess_and_the_victims_weights_keep_no_gradient(network, small):
    view, truth = build_view(network, Noise(0.05), small, images=5, threat="white_box")
    first = TINY(view, seed=0).images
    again = TINY(replace(view, workbook=Workbook()), seed=0).images
    assert torch.equal(first, again) and first.shape == truth[:3].pixels().shape
    assert not torch.equal(first, TINY(view, seed=1).images)
    assert all(p.grad is None for p in network.parameters())


@pytest.mark.slow
def test_the_search_improves_on_a_poor_decoders_guess(network, small):
    view, truth = build_view(network, Undefended(), small, images=8, threat="white_box")
    attack = replace(BRIEF, start=TINY.start)
    found, guess = attack(view), TINY.start.trained(view, 0).invert(view.targets)
    assert len(found.curve) == 2 and found.curve[1] < found.curve[0]
    before, after = (METRICS["mse"](images, truth.pixels()).mean() for images in (guess, found.images))
    assert after < 0.95 * before


def test_where_the_search_gains_nothing_the_decoders_guess_stands(thumbnails):
    view, _ = view_of(Pixels(), thumbnails, Noise(1000), threat="white_box")
    found = TINY(view, seed=0)
    assert torch.equal(found.images, TINY.start.trained(view, 0).invert(view.targets[:3])) and len(found.curve) == 1
