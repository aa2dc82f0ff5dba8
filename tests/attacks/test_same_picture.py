"""The same picture again: the nearest of the gallery, measured against the noise."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from attcem.attacks.same_picture import SamePicture, nearest, noise_scale
from attcem.defences import Defence, Noise, Undefended
from attcem.threat import make_oracle
from tests.attacks.asking import ask, view_with_gallery
from tests.conftest import noise_images
from tests.probes import Pixels, split_with


class Uneven(Defence):
    """Noise that drowns the left half of a picture and spares the right."""

    def release(self, z):
        strength = torch.where(torch.arange(z.shape[-1]) < z.shape[-1] // 2, 50.0, 0.05)
        return z + strength * torch.randn_like(z)


def test_a_target_is_found_wherever_it_stands_in_the_gallery(many):
    view, truth = view_with_gallery(Pixels(), many, Noise(0.05))
    first = SamePicture()(view)
    reversed_gallery = replace(view, gallery=view.gallery[torch.arange(199, -1, -1)])
    assert torch.equal(199 - SamePicture()(reversed_gallery)[:, 0], first[:, 0])
    assert torch.equal(view.gallery.x[first[:, 0]], truth.x)


def test_noise_is_measured_position_by_position(many):
    oracle = make_oracle(split_with(Pixels()), Uneven())
    scale = noise_scale(oracle, many.public[:64].pixels(), 8).reshape(28, 28)
    assert scale[:, :14].mean().item() == pytest.approx(50, rel=0.02)
    assert (scale[:, 14:] < 0.01 * scale[:, :14].mean()).all()
    plain = noise_scale(make_oracle(split_with(Pixels()), Undefended()), many.public[:8].pixels(), 2)
    assert torch.equal(plain, torch.ones(784))


def test_uneven_noise_is_seen_through(many):
    view, truth = view_with_gallery(Pixels(), many, Uneven())
    assert ask(SamePicture(), view, truth)["top1"][0] > 0.9
    unweighted = nearest(view.targets.flatten(1), [(view.gallery.pixels().flatten(1), torch.arange(200))])
    assert SamePicture().score(unweighted, truth, view.gallery, view.public)["top1"].mean() < 0.2


def test_nearest_agrees_with_sorting_all_distances():
    targets, candidates = torch.randn(30, 6), torch.randn(100, 6)
    found = nearest(targets, zip(candidates.split(7), torch.arange(100).split(7), strict=True))
    expected = (targets[:, None] - candidates[None]).norm(dim=2).argsort(1)[:, :5]
    assert torch.equal(found, expected)


def test_a_copy_of_the_true_image_counts_as_right():
    truth = noise_images(3)
    gallery = truth[torch.tensor([0, 1, 2, 1])]
    answers = torch.tensor([[0, 1, 2], [3, 0, 2], [1, 3, 2]])
    scores = SamePicture().score(answers, truth, gallery, truth)
    assert scores["top1"].tolist() == [1, 1, 0] and scores["top5"].tolist() == [1, 1, 1]
    assert SamePicture().chance(truth, gallery, truth) == {"top1": 0.25, "top5": 1.0}


def test_a_gallery_smaller_than_the_top_is_ranked_whole(many):
    view, _ = view_with_gallery(Pixels(), many, images=3)
    assert SamePicture()(view).shape == (3, 3)
    with pytest.raises(ValueError, match="gallery"):
        SamePicture()(replace(view, gallery=None))
