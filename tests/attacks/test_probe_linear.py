"""The linear probe: its regressions are those of scikit-learn, and it learns from released latents of public images."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge

from attcem.attacks.probe_linear import LinearProbe, logistic
from attcem.attacks.regression import WIDE, TrainingSet, examples, ridge, values
from attcem.defences import Noise, Undefended
from attcem.threat import make_oracle
from attcem.types import Images
from tests.attacks.asking import ask, view_with_gallery
from tests.conftest import noise_images, shrink
from tests.probes import Pixels, split_with


@pytest.mark.parametrize(("rows", "size"), [(60, 7), (9, 40)])
def test_ridge_is_that_of_scikit_learn(rows, size):
    features, wanted = torch.randn(rows, size), torch.randn(rows, 3)
    strengths = (0.01, 0.5)
    for strength, found in zip(strengths, ridge(features, wanted, strengths), strict=True):
        model = Ridge(alpha=strength * rows, fit_intercept=False).fit(features.numpy(), wanted.numpy())
        np.testing.assert_allclose(found.T.numpy(), model.coef_, atol=1e-4)


def test_ridge_survives_features_that_repeat_each_other():
    features = torch.randn(50, 20).repeat(1, 300) * 100
    solved = ridge(features, features[:, :1], (1e-5,))[0]
    torch.testing.assert_close(features @ solved, features[:, :1], atol=1e-2, rtol=1e-3)


def test_logistic_regression_is_that_of_scikit_learn():
    features, labels = torch.randn(200, 5), torch.arange(200) % 3
    features[:, 0] += labels
    weights, offsets = logistic(features, labels, 3, 0.1, steps=100)
    model = LogisticRegression(C=1 / (0.1 * 200), tol=1e-8).fit(features.numpy(), labels.numpy())
    np.testing.assert_allclose(weights.T.numpy(), model.coef_, atol=1e-3)
    np.testing.assert_allclose(offsets - offsets.mean(), model.intercept_ - model.intercept_.mean(), atol=1e-3)


def test_labels_that_say_nothing_teach_nothing(many):
    view, truth = view_with_gallery(Pixels(), many)
    shuffled = view.public.y[torch.randperm(1500, generator=torch.Generator().manual_seed(0))]
    score, chance = ask(LinearProbe(), replace(view, public=Images(view.public.x, shuffled)), truth)["accuracy"]
    assert score < chance + 0.06


def test_chance_is_the_largest_class_of_the_attacked_images():
    truth = Images(noise_images(10).x, torch.tensor([0] * 6 + [1, 1, 2, 3]))
    assert LinearProbe().chance(truth, truth, noise_images(20)) == {"accuracy": 0.6}
    scores = LinearProbe().score(torch.zeros(10, dtype=torch.long), truth, truth, truth)
    assert scores["accuracy"].mean().item() == pytest.approx(0.6)


def test_a_data_is_standardised_and_holds_out_other_images(many):
    view, _ = view_with_gallery(Pixels(), many, Noise(0.5), images=5)
    data = TrainingSet.of(view, seed=0)
    assert data.own.features.mean(0).abs().max() < 1e-3
    torch.testing.assert_close(data.own.features.std(0), torch.ones(784), atol=1e-3, rtol=0)
    own, held_out = set(data.own.of.tolist()), set(data.held_out.of.tolist())
    assert not own & held_out and own | held_out == set(range(1500))
    torch.testing.assert_close(data.read(view.targets) * data.scale + data.mean, view.targets.flatten(1))


def test_an_image_is_released_again_only_where_that_differs(many):
    some = Images(many.public.x[:30], torch.arange(30))
    model = split_with(Pixels())
    device = torch.device("cpu")
    plain = examples(make_oracle(model, Undefended()), some, 100, values, device)
    noisy = examples(make_oracle(model, Noise(0.1)), some, 100, values, device)
    few = examples(make_oracle(model, Noise(0.1)), some, 12, values, device)
    assert plain.of.tolist() == list(range(30)) and torch.equal(plain.features, some.pixels().flatten(1))
    assert noisy.of.tolist() == 3 * list(range(30)) and not torch.equal(noisy.features[:30], noisy.features[30:60])
    assert few.of.tolist() == list(range(12))


def test_a_wide_latent_is_read_through_the_dual(many):
    class Widened(Pixels):
        def forward(self, x):
            return x.repeat(1, 6, 1, 1)

    fewer = shrink(many, private=10, validation=10, public=300, test=100)
    view, truth = view_with_gallery(Widened(), fewer, images=100)
    assert view.targets[0].numel() > WIDE
    assert ask(LinearProbe(steps=2), view, truth)["accuracy"][0] > 0.6
