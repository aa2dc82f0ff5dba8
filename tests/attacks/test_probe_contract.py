"""Probes read what is there, nothing where nothing is, and are scored against the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from attcem.attacks import PROBES
from attcem.defences import Noise, Undefended
from tests.attacks.asking import ask, view_with_gallery
from tests.attacks.conftest import at_most
from tests.probes import Coarse, Nothing, Patches, Pixels

every_probe = pytest.mark.parametrize("probe", PROBES.values(), ids=lambda probe: type(probe).__name__)


@pytest.fixture(scope="module")
def few_to_learn_from(many_thumbnails):
    """Where there is nothing to learn, few public images show it."""
    return replace(many_thumbnails, public=many_thumbnails.public[:300])


READ = {
    "linear": (1, 0.72),
    "property": (5, 0.95),
    "attributes": (2, 0.92),
    "same_picture": (2, 0.999),
    "identity": (3, 0.2),
}
"""How many things a probe reads off plain pixels, and how well at least: a linear probe cannot read more of a class."""
LESS = {"property": 0.8, "attributes": 0.75}


@pytest.mark.parametrize("encoder", [Pixels(), nn.Flatten(), Patches()], ids=["map", "vector", "tokens"])
@pytest.mark.parametrize("name", PROBES)
def test_everything_is_told_by_the_identity_encoder(name, encoder, many_thumbnails):
    things, least = READ.get(name, (1, 0.9))
    if name in LESS and not isinstance(encoder, Pixels):
        least = LESS[name]  # contrast and busyness are not linear in the pixels, and only a map shows them by itself
    told = ask(PROBES[name], *view_with_gallery(encoder, many_thumbnails))
    assert len(told) >= things
    assert all(score > least and chance < 0.75 for score, chance in told.values())


@pytest.mark.parametrize("encoder", [Nothing(), Nothing(20), Nothing(9, 8)], ids=["map", "vector", "tokens"])
@pytest.mark.parametrize("guard", [Undefended(), Noise(1.0)])
@every_probe
def test_nothing_is_told_by_a_constant_encoder(probe, guard, encoder, few_to_learn_from):
    view, truth = view_with_gallery(encoder, few_to_learn_from, guard)
    for score, chance in ask(at_most(probe, steps=100), view, truth).values():
        assert score < chance + 3 * np.sqrt(chance * (1 - chance) / 200)


@every_probe
def test_heavy_noise_leaves_chance(probe, few_to_learn_from):
    view, truth = view_with_gallery(Pixels(), few_to_learn_from, Noise(1000))
    for score, chance in ask(probe, view, truth).values():
        assert score < chance + 3 * np.sqrt(chance * (1 - chance) / 200)


@every_probe
def test_answers_depend_on_view_and_seed_only(probe, many_thumbnails):
    view, _ = view_with_gallery(Coarse(), many_thumbnails, Noise(1))
    probe = at_most(probe, steps=20)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = probe(view, seed=0)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    assert torch.equal(probe(view, seed=0), first) and not torch.equal(probe(view, seed=1), first)


@every_probe
def test_without_queries_the_error_names_the_threat_model(probe, many_thumbnails):
    view, _ = view_with_gallery(Pixels(), many_thumbnails, images=5)
    assert probe.needs - {"people"} == {"public", "queries"}
    with pytest.raises(ValueError, match="query or white_box"):
        probe(replace(view, oracle=None))
