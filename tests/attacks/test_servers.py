"""Servers that are after the pictures of clients in training: what they get, and what clients notice."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from attcem.attacks import BASELINES, SERVERS
from attcem.attacks.substitute import Substitute
from attcem.config import ClientsConfig
from attcem.defences import Noise, Undefended
from attcem.models import Split
from attcem.threat import build_view
from attcem.train import HONEST, fit_clients, gradient_flags
from tests.attacks.conftest import attack_on, smaller
from tests.probes import Nothing, Pixels, split_with

BRIEF = {"channels": 8, "inverter": Substitute().brief()}
every_server = pytest.mark.parametrize("name", SERVERS)


@pytest.fixture(scope="module")
def few(fashion):
    """Small pictures; those attacked are the ones that clients train on."""
    part = {"private": fashion.private[:320], "public": fashion.public[:320], "validation": fashion.validation[:32]}
    return smaller(replace(fashion, **part, test=fashion.private[:60]))


def victim() -> Split:
    """An encoder that is easily steered."""
    torch.manual_seed(0)
    half, layers = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 4, 3, stride=2, padding=1)
    encoder = nn.Sequential(half, nn.ReLU(), layers, nn.Sigmoid())
    return Split(encoder, nn.Sequential(nn.Flatten(), nn.Linear(196, 10)), latent_shape=(4, 7, 7), classes=10)


def train(model, data, server, guard=None, **options):
    options = {"epochs": 12, "batch": 32, "lr": 0.02, "crop": 1, "progress": False} | options
    clients = ClientsConfig(count=2)
    return fit_clients(model, guard or Undefended(), data, clients, server=server, **options)[0]


def made(name, data, **options):
    """One that practises for no longer than it takes to be made."""
    server = SERVERS[name](data.public, **BRIEF, **options)
    if hasattr(server, "practice"):
        server.practice = 2
    return server


def found_by(server, model, data, guard=None):
    view, truth = build_view(model, guard or Undefended(), data, images=60, threat="black_box")
    asked = type("Asked", (), {"__call__": lambda self, view, seed: server.reconstruct(view, seed=seed)})()
    return attack_on(view, truth, asked)


@every_server
@pytest.mark.parametrize("guard", [Undefended(), Noise(0.2)], ids=["open", "noisy"])
def test_a_constant_encoder_leaves_the_mean_image(name, guard, few):
    model, server = split_with(Nothing(), few.shape), made(name, few, noise=guard.sigma)
    server.begin(torch.full((8, 4, 7, 7), 0.3), torch.arange(8))
    found, _, _ = found_by(server, model, few, guard)
    view, truth = build_view(model, guard, few, images=60, threat="black_box")
    assert torch.equal(found.images, BASELINES["mean_image"](view, truth.y))


@every_server
def test_an_identity_encoder_hides_nothing(name, few):
    model, server = split_with(Pixels(), few.shape), made(name, few)
    server.begin(few.private[:8].pixels(), few.private[:8].y)
    assert found_by(server, model, few)[1] < 1e-3


@pytest.mark.slow
def test_a_hijacked_encoder_gives_the_pictures_away(few):
    """Its clients train on what it sends, and it reads what they then release."""
    server, model = SERVERS["hijack"](few.public, practice=200, **BRIEF), victim()
    state = train(model, few, server)
    _, mse, mean = found_by(server, model, few)
    assert mse < 0.75 * mean
    assert state.best_epoch == 12, "a hijacker decides what is deployed"


def test_an_encoder_is_simulated_from_what_it_sends(few):
    server, model = SERVERS["simulate"](few.public, **BRIEF), victim()
    train(model, few, server, epochs=6)
    _, mse, mean = found_by(server, model, few)
    assert mse < 0.85 * mean


@pytest.mark.parametrize("guard", [Undefended(), Noise(0.1)], ids=["open", "noisy"])
def test_who_simulates_changes_nothing_that_a_client_could_see(guard, few):
    def trained(server):
        model = victim()
        model.decoder.insert(0, nn.BatchNorm2d(4))  # running statistics, which the server's own pictures would move
        state = train(model, few, server, guard, epochs=2)
        rows = [
            {name: value for name, value in row.items() if "gap" in name or "loss" in name} for row in state.history
        ]
        return model.state_dict(), rows

    (honest, said), (watched, heard) = trained(HONEST), trained(SERVERS["simulate"](few.public, **BRIEF))
    assert said == heard and all(torch.equal(honest[name], watched[name]) for name in honest)


@pytest.mark.parametrize(
    ("server", "fires"),
    [
        (lambda few: HONEST, False),
        (lambda few: SERVERS["simulate"](few.public, **BRIEF), False),
        (lambda few: SERVERS["hijack"](few.public, practice=20, **BRIEF), True),
        (lambda few: SERVERS["hijack"](few.public, practice=20, by_class=True, **BRIEF), False),
    ],
    ids=["honest", "simulate", "hijack", "hijack by class"],
)
def test_a_client_notices_gradients_that_know_no_labels(server, fires, few):
    """And only those: who hijacks class by class is not found this way."""
    history = train(victim(), few, server(few), epochs=2).history
    named = [flag.partition(":")[0] for flag in gradient_flags(history)]
    assert named == (["client 0", "client 1"] if fires else []) and not gradient_flags(history[:1])


def test_what_a_server_learned_cannot_be_resumed(few, tmp_path):
    with pytest.raises(ValueError, match="train with it from the beginning"):
        train(victim(), few, SERVERS["simulate"](few.public), out=tmp_path / "run", resume=True)
