"""A probe's view with a gallery in it, and how its answers score next to chance."""

from __future__ import annotations

from dataclasses import replace

import torch

from attcem.types import People
from tests.attacks.conftest import view_of


def view_with_gallery(encoder, data, guard=None, images=200):
    view, truth = view_of(encoder, data, guard, threat="query", images=images)
    gallery = truth[torch.randperm(len(truth), generator=torch.Generator().manual_seed(1))]
    people = People.of(data.public[-400:], data.classes, coarse)
    return replace(view, gallery=gallery, people=people), truth


def coarse(pictures):
    """An embedding that needs no training."""
    return torch.nn.functional.adaptive_avg_pool2d(pictures, 7).flatten(1)


def ask(probe, view, truth):
    answers = probe(view, seed=0)
    assert len(answers) == len(truth)
    scores = probe.score(answers, truth, view.gallery, view.public)
    chance = probe.chance(truth, view.gallery, view.public)
    assert set(scores) == set(chance)
    assert all(s.shape == (len(truth),) and s.min() >= 0 and s.max() <= 1 for s in scores.values())
    return {name: (values.mean().item(), chance[name]) for name, values in scores.items()}
