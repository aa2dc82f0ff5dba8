"""Probes read what is there, nothing where nothing is, and are scored against the truth."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from torch import nn

from attcem.attacks.probe_linear import WIDE, Lesson, LinearProbe, examples, logistic, ridge, values
from attcem.attacks.probe_property import PROPERTIES, PropertyProbe, measured, questions, true_answers, with_texture
from attcem.attacks.reidentify import Reidentify, nearest, noise_scale
from attcem.data import Data
from attcem.defences import Defence, Noise, Undefended
from attcem.threat import build_view, make_oracle
from attcem.types import Images
from tests.conftest import noise_images, shrink
from tests.probes import Nothing, Pixels, split_with

PROBES = [LinearProbe(), PropertyProbe(), Reidentify()]


class Coarse(nn.Module):
    """Means of 4×4 pixels."""

    def forward(self, x):
        return nn.functional.avg_pool2d(x, 4)


class Uneven(Defence):
    """Noise that drowns the left half of a picture and spares the right."""

    def release(self, z):
        strength = torch.where(torch.arange(z.shape[-1]) < z.shape[-1] // 2, 50.0, 0.05)
        return z + strength * torch.randn_like(z)


@pytest.fixture(scope="module")
def pictures(fashion) -> Data:
    return shrink(fashion, private=10, validation=10, public=1500, test=200)


def view_of(data, encoder, guard=None, images=200):
    view, truth = build_view(split_with(encoder), guard or Undefended(), data, images=images)
    gallery = truth[torch.randperm(len(truth), generator=torch.Generator().manual_seed(1))]
    return replace(view, gallery=gallery), truth


def ask(probe, view, truth):
    answers = probe(view, seed=0)
    assert len(answers) == len(truth)
    scores = probe.score(answers, truth, view.gallery, view.public)
    chance = probe.chance(truth, view.gallery, view.public)
    assert set(scores) == set(chance)
    assert all(s.shape == (len(truth),) and s.min() >= 0 and s.max() <= 1 for s in scores.values())
    return {name: (values.mean().item(), chance[name]) for name, values in scores.items()}


def test_everything_is_told_by_the_identity_encoder(pictures):
    view, truth = view_of(pictures, Pixels())
    accuracy, chance = ask(LinearProbe(), view, truth)["accuracy"]
    assert accuracy > 0.72 and chance < 0.2
    told = ask(PropertyProbe(), view, truth)
    assert len(told) == 5 and min(score for score, _ in told.values()) > 0.95
    assert ask(Reidentify(), view, truth) == {"top1": (1.0, 1 / 200), "top5": (1.0, 5 / 200)}


@pytest.mark.parametrize("guard", [Undefended(), Noise(1.0)])
@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: type(probe).__name__)
def test_nothing_is_told_by_a_constant_encoder(probe, guard, pictures):
    view, truth = view_of(pictures, Nothing(), guard)
    for score, chance in ask(probe, view, truth).values():
        assert score < chance + 3 * np.sqrt(chance * (1 - chance) / 200)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: type(probe).__name__)
def test_heavy_noise_leaves_chance(probe, pictures):
    view, truth = view_of(pictures, Pixels(), Noise(1000))
    for score, chance in ask(probe, view, truth).values():
        assert score < chance + 3 * np.sqrt(chance * (1 - chance) / 200)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: type(probe).__name__)
def test_answers_depend_on_view_and_seed_only(probe, pictures):
    view, _ = view_of(pictures, Coarse(), Noise(1))
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = probe(view, seed=0)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert torch.equal(probe(view, seed=0), first) and not torch.equal(probe(view, seed=1), first)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: type(probe).__name__)
def test_without_queries_the_error_names_the_threat_model(probe, pictures):
    view, _ = view_of(pictures, Pixels(), images=5)
    assert probe.needs == {"public", "queries"}
    with pytest.raises(ValueError, match="query or white_box"):
        probe(replace(view, oracle=None))


# -- the linear probe


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


def test_labels_that_say_nothing_teach_nothing(pictures):
    view, truth = view_of(pictures, Pixels())
    shuffled = view.public.y[torch.randperm(1500, generator=torch.Generator().manual_seed(0))]
    score, chance = ask(LinearProbe(), replace(view, public=Images(view.public.x, shuffled)), truth)["accuracy"]
    assert score < chance + 0.06


def test_chance_is_the_largest_class_of_the_attacked_images():
    truth = Images(noise_images(10).x, torch.tensor([0] * 6 + [1, 1, 2, 3]))
    assert LinearProbe().chance(truth, truth, noise_images(20)) == {"accuracy": 0.6}
    scores = LinearProbe().score(torch.zeros(10, dtype=torch.long), truth, truth, truth)
    assert scores["accuracy"].mean().item() == pytest.approx(0.6)


def test_a_lesson_is_standardised_and_holds_out_other_images(pictures):
    view, _ = view_of(pictures, Pixels(), Noise(0.5), images=5)
    lesson = Lesson.of(view, seed=0)
    assert lesson.own.features.mean(0).abs().max() < 1e-3
    torch.testing.assert_close(lesson.own.features.std(0), torch.ones(784), atol=1e-3, rtol=0)
    own, held_out = set(lesson.own.of.tolist()), set(lesson.held_out.of.tolist())
    assert not own & held_out and own | held_out == set(range(1500))
    torch.testing.assert_close(lesson.read(view.targets) * lesson.scale + lesson.mean, view.targets.flatten(1))


def test_an_image_is_released_again_only_where_that_differs(pictures):
    some = Images(pictures.public.x[:30], torch.arange(30))
    model = split_with(Pixels())
    device = torch.device("cpu")
    plain = examples(make_oracle(model, Undefended()), some, 100, values, device)
    noisy = examples(make_oracle(model, Noise(0.1)), some, 100, values, device)
    few = examples(make_oracle(model, Noise(0.1)), some, 12, values, device)
    assert plain.of.tolist() == list(range(30)) and torch.equal(plain.features, some.pixels().flatten(1))
    assert noisy.of.tolist() == 3 * list(range(30)) and not torch.equal(noisy.features[:30], noisy.features[30:60])
    assert few.of.tolist() == list(range(12))


def test_a_wide_latent_is_read_through_the_dual(pictures):
    class Widened(Pixels):
        def forward(self, x):
            return x.repeat(1, 6, 1, 1)

    view, truth = view_of(shrink(pictures, private=10, validation=10, public=300, test=100), Widened(), images=100)
    assert view.targets[0].numel() > WIDE
    assert ask(LinearProbe(steps=2), view, truth)["accuracy"][0] > 0.6


# -- the property probe


def test_properties_are_what_their_names_say():
    flat = torch.full((1, 3, 6, 6), 0.5)
    bright, red, left, top, striped = (flat.clone() for _ in range(5))
    bright += 0.2
    red[:, 0] += 0.2
    left[..., :3] += 0.2
    top[..., :3, :] += 0.2
    striped[..., ::2] += 0.2
    above = {
        "brighter": (bright, flat),
        "redder": (red, bright),
        "starker": (left, bright),
        "busier": (striped, left),
        "heavier_left": (left, top),
        "brighter_above": (top, left),
    }
    assert set(above) == set(PROPERTIES)
    for name, (more, less) in above.items():
        assert PROPERTIES[name](more) > PROPERTIES[name](less) + 1e-3, name


def test_properties_of_one_picture_by_slow_loops():
    x = torch.rand(1, 3, 5, 7)
    picture = x[0].numpy().astype(np.float64)
    steps = [
        np.hypot(picture[c, i + 1, j] - picture[c, i, j], picture[c, i, j + 1] - picture[c, i, j])
        for c in range(3)
        for i in range(4)
        for j in range(6)
    ]
    expected = {
        "brighter": picture.mean(),
        "redder": picture[0].mean() - (picture[1].mean() + picture[2].mean()) / 2,
        "starker": np.mean([picture[c].std(ddof=1) for c in range(3)]),
        "busier": np.mean(steps),
        "heavier_left": picture[:, :, :3].mean() - picture[:, :, 4:].mean(),
        "brighter_above": picture[:, :2].mean() - picture[:, 3:].mean(),
    }
    for name, value in expected.items():
        assert PROPERTIES[name](x).item() == pytest.approx(value, abs=1e-5), name


def test_a_mirrored_picture_turns_its_own_answer_and_no_other(pictures):
    truth = pictures.test
    mirrored = Images(truth.x.flip(2), truth.y)
    names = questions(truth)
    figures, turned = measured(truth), measured(mirrored)
    side = names.index("heavier_left")
    torch.testing.assert_close(turned[:, side], -figures[:, side], atol=1e-5, rtol=0)
    rest = [i for i, name in enumerate(names) if name not in {"heavier_left", "busier"}]
    torch.testing.assert_close(turned[:, rest], figures[:, rest], atol=1e-5, rtol=0)


def test_colour_is_asked_about_only_where_there_is_some():
    assert "redder" in questions(noise_images(3, (3, 8, 8)))
    assert "redder" not in questions(noise_images(3, (1, 8, 8)))


def test_half_of_the_public_images_lie_above_their_median(pictures):
    yes = true_answers(pictures.public, pictures.public).float().mean(0)
    assert (yes - 0.5).abs().max() < 0.01


def test_answers_about_other_pictures_are_worth_nothing(pictures):
    view, truth = view_of(pictures, Pixels())
    probe = PropertyProbe(steps=20)
    others = probe.score(probe(view).roll(1, 0), truth, view.gallery, view.public)
    assert all(values.mean() < 0.65 for values in others.values())


def test_labels_are_not_looked_at(pictures):
    view, _ = view_of(pictures, Pixels(), images=50)
    probe, public = PropertyProbe(steps=20), view.public
    other = replace(view, public=Images(public.x, torch.zeros_like(public.y)))
    assert torch.equal(probe(view), probe(other))


def test_chance_is_the_more_frequent_answer():
    dark, light = (torch.full((8, 6, 6, 1), shade, dtype=torch.uint8) for shade in (10, 200))
    public = Images(torch.cat([dark, light]), torch.zeros(16, dtype=torch.long))
    truth = public[torch.tensor([0, 1, 2, 8])]
    assert PropertyProbe().chance(truth, truth, public)["brighter"] == pytest.approx(0.75)
    right = torch.tensor([[False] * 5] * 3 + [[True] + [False] * 4])
    scores = PropertyProbe().score(right, truth, truth, public)
    assert list(scores) == questions(truth) and all(values.tolist() == [1] * 4 for values in scores.values())


def test_texture_is_added_where_the_latent_has_height_and_width():
    latents = torch.rand(2, 3, 4, 5)
    features = with_texture(latents)
    assert features.shape == (2, 60 + 6)
    assert features[1, 60 + 2].item() == pytest.approx(latents[1, 2].std().item(), abs=1e-6)
    assert with_texture(torch.rand(2, 9)).shape == (2, 9)


# -- re-identification


def test_a_target_is_found_wherever_it_stands_in_the_gallery(pictures):
    view, truth = view_of(pictures, Pixels(), Noise(0.05))
    first = Reidentify()(view)
    reversed_gallery = replace(view, gallery=view.gallery[torch.arange(199, -1, -1)])
    assert torch.equal(199 - Reidentify()(reversed_gallery)[:, 0], first[:, 0])
    assert torch.equal(view.gallery.x[first[:, 0]], truth.x)


def test_noise_is_measured_position_by_position(pictures):
    oracle = make_oracle(split_with(Pixels()), Uneven())
    scale = noise_scale(oracle, pictures.public[:64].pixels(), 8).reshape(28, 28)
    assert scale[:, :14].mean().item() == pytest.approx(50, rel=0.02)
    assert (scale[:, 14:] < 0.01 * scale[:, :14].mean()).all()
    plain = noise_scale(make_oracle(split_with(Pixels()), Undefended()), pictures.public[:8].pixels(), 2)
    assert torch.equal(plain, torch.ones(784))


def test_uneven_noise_is_seen_through(pictures):
    view, truth = view_of(pictures, Pixels(), Uneven())
    assert ask(Reidentify(), view, truth)["top1"][0] > 0.9
    unweighted = nearest(view.targets.flatten(1), [(view.gallery.pixels().flatten(1), torch.arange(200))])
    assert Reidentify().score(unweighted, truth, view.gallery, view.public)["top1"].mean() < 0.2


def test_nearest_agrees_with_sorting_all_distances():
    targets, candidates = torch.randn(30, 6), torch.randn(100, 6)
    found = nearest(targets, zip(candidates.split(7), torch.arange(100).split(7), strict=True))
    expected = (targets[:, None] - candidates[None]).norm(dim=2).argsort(1)[:, :5]
    assert torch.equal(found, expected)


def test_a_copy_of_the_true_image_counts_as_right():
    truth = noise_images(3)
    gallery = truth[torch.tensor([0, 1, 2, 1])]
    answers = torch.tensor([[0, 1, 2], [3, 0, 2], [1, 3, 2]])
    scores = Reidentify().score(answers, truth, gallery, truth)
    assert scores["top1"].tolist() == [1, 1, 0] and scores["top5"].tolist() == [1, 1, 1]
    assert Reidentify().chance(truth, gallery, truth) == {"top1": 0.25, "top5": 1.0}


def test_a_gallery_smaller_than_the_top_is_ranked_whole(pictures):
    view, _ = view_of(pictures, Pixels(), images=3)
    assert Reidentify()(view).shape == (3, 3)
    with pytest.raises(ValueError, match="gallery"):
        Reidentify()(replace(view, gallery=None))
