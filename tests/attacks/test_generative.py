from dataclasses import replace

import pytest
import torch

from attcem.attacks import BASELINES
from attcem.attacks.decoder import Decoder
from attcem.attacks.generative import VAE, Generative, Prior, negative_bound
from attcem.attacks.pairs import hold_out
from attcem.defences import Noise, Undefended
from attcem.metrics import METRICS
from attcem.threat import build_view
from tests.conftest import shrink
from tests.probes import Nothing, Pixels, split_with

BRIEF = Generative().brief()
QUICK = Prior(dimensions=16, channels=8, steps=10)
TINY = Generative(images=3, steps=5, tuning=4, prior=QUICK, start=replace(Decoder(8, 1), cycle=10, doublings=0))


@pytest.fixture(scope="module")
def pictures(fashion):
    return shrink(fashion, private=10, validation=10, public=1500, test=100)


def view_of(encoder, pictures, guard=None):
    return build_view(split_with(encoder), guard or Undefended(), pictures, images=100, threat="white_box")


def errors(view, truth):
    found = BRIEF(view, seed=0).images
    truth = truth[: BRIEF.images]
    assert found.shape == truth.pixels().shape and found.min() >= 0 and found.max() <= 1
    mean = BASELINES["mean_image"](view, truth.y)
    return [METRICS["mse"](guess, truth.pixels()).mean().item() for guess in (found, mean)]


def test_breaks_the_identity_encoder(pictures):
    mse, _ = errors(*view_of(Pixels(), pictures))
    assert mse < 1e-3


def test_does_no_better_than_the_mean_image_on_a_constant_encoder(pictures):
    mse, mean = errors(*view_of(Nothing(), pictures))
    assert 0.99 * mean < mse < 1.2 * mean


def test_noise_that_drowns_the_latent_leaves_the_mean_image(pictures):
    mse, mean = errors(*view_of(Pixels(), pictures, Noise(1000)))
    assert mse > 0.97 * mean


def test_needs_the_devices_weights(pictures):
    assert BRIEF.needs == {"public", "queries", "weights", "gradients"}
    view, _ = build_view(split_with(Pixels()), Undefended(), pictures, images=3, threat="query")
    with pytest.raises(ValueError, match="white_box"):
        TINY(view)


def test_the_image_model_reconstructs_unseen_images_better_than_the_mean_image(pictures):
    own, held_out = hold_out(pictures.public, 0)
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


def test_training_raises_the_bound_on_unseen_images(pictures):
    own, held_out = hold_out(pictures.public, 0)
    x = held_out.pixels()

    def bound(steps):
        model = Prior(dimensions=16, channels=16, steps=steps).train(own, torch.device("cpu"), 0, False)
        centre, spread = model.encode(x)
        torch.manual_seed(0)
        w = centre + (spread / 2).exp() * torch.randn_like(centre)
        return -negative_bound(x, model.generate(w), centre, spread).item()

    assert bound(150) > bound(0)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 30, 33)])
def test_the_image_model_paints_pictures_of_any_shape(shape):
    x = torch.rand(20, *shape)
    model = VAE(x, 4, 8)
    assert model.encode(x)[0].shape == (20, 4) and model.generate(torch.zeros(2, 4)).shape == (2, *shape)


def test_the_image_model_is_trained_once_and_kept_in_the_notes(pictures):
    view, _ = view_of(Pixels(), pictures)
    own, _ = hold_out(view.public, 0)
    assert QUICK.trained(view, own, 0) is QUICK.trained(view, own, 0)
    assert QUICK.trained(view, own, 0) is not QUICK.trained(view, own, 1)


def test_the_same_seed_gives_the_same_guess_and_the_victims_weights_keep_no_gradient(network, small):
    view, truth = build_view(network, Noise(0.05), small, images=5, threat="white_box")
    first = TINY(view, seed=0).images
    again = TINY(replace(view, notes={}), seed=0).images
    assert torch.equal(first, again) and first.shape == truth[:3].pixels().shape
    assert not torch.equal(first, TINY(view, seed=1).images)
    assert all(p.grad is None for p in network.parameters())


def test_the_search_improves_on_a_poor_decoders_guess(network, small):
    view, truth = build_view(network, Undefended(), small, images=8, threat="white_box")
    attack = replace(BRIEF, start=TINY.start)
    found, guess = attack(view), TINY.start.trained(view, 0).invert(view.targets)
    assert len(found.curve) == 2 and found.curve[1] < found.curve[0]
    before, after = (METRICS["mse"](images, truth.pixels()).mean() for images in (guess, found.images))
    assert after < 0.95 * before


def test_where_the_search_gains_nothing_the_decoders_guess_stands(pictures):
    view, _ = view_of(Pixels(), pictures, Noise(1000))
    found = TINY(view, seed=0)
    assert torch.equal(found.images, TINY.start.trained(view, 0).invert(view.targets[:3])) and len(found.curve) == 1
