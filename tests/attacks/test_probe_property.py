"""The property probe: each property is what its name says, and answers are worth what they tell beyond chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from attcem.attacks.probe_property import PROPERTIES, PropertyProbe, measured, questions, true_answers, with_texture
from attcem.types import Images
from tests.attacks.asking import view_with_gallery
from tests.conftest import noise_images
from tests.probes import Pixels


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


def test_a_mirrored_picture_turns_its_own_answer_and_no_other(many):
    truth = many.test
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


def test_half_of_the_public_images_lie_above_their_median(many):
    yes = true_answers(many.public, many.public).float().mean(0)
    assert (yes - 0.5).abs().max() < 0.01


def test_answers_about_other_pictures_are_worth_nothing(many):
    view, truth = view_with_gallery(Pixels(), many)
    probe = PropertyProbe(steps=20)
    others = probe.score(probe(view).roll(1, 0), truth, view.gallery, view.public)
    assert all(values.mean() < 0.65 for values in others.values())


def test_labels_are_not_looked_at(many):
    view, _ = view_with_gallery(Pixels(), many, images=50)
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
