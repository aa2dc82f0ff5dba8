"""A latent may be a vector, tokens or a map: training, bounds, probes and explanations take all three."""

import math

import pytest
import torch
from torch import nn

from attcem import Noise, create_defence, fit
from attcem.assess.record import promises
from attcem.explain import draw
from attcem.explain.look import look
from attcem.figures.style import styled
from attcem.models import Split

LATENTS = [(24,), (6, 8), (4, 7, 7)]
"""A vector, tokens, a map."""


@pytest.fixture(params=LATENTS, ids=["vector", "tokens", "map"])
def network(request):
    torch.manual_seed(0)
    size = math.prod(request.param)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(784, size), nn.Sigmoid(), nn.Unflatten(1, request.param))
    decoder = nn.Sequential(nn.Flatten(), nn.Linear(size, 10))
    return Split(encoder, decoder, latent_shape=request.param, classes=10)


@pytest.mark.parametrize("assign", ["class", "slot"])
def test_the_bound_trains_is_explained_and_promises(network, small, assign):
    guard = Noise(0.2) + create_defence("bound", assign=assign, tokens="spatial", slots=3)
    state = fit(network, guard, small, epochs=1, progress=False)
    assert state.history[0]["bound/penalty"] > 0
    promised = promises(network, guard, small)
    assert promised["rate_nats"] > 0 and promised["fisher"]["mse"] > 0
    scene = look(network, guard, small, 60)
    assert scene.z.shape == (60, *network.latent_shape)
    assert [sight.link for sight in scene.sights] == (["bound"] if assign == "slot" else [])
    with styled():
        assert len(draw(scene, tsne=False)) == (3 if assign == "slot" else 1)
