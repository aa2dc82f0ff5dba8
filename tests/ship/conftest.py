"""A few exported artifacts for each process of the suite: an export takes seconds."""

import pytest
import torch

from attcem.defences import Guard, Noise, Wire, create_defence
from attcem.models import split
from attcem.ship import export
from tests.ship.audited import audited_artifact

SHAPE, CLASSES = (1, 28, 28), 5


def network():
    torch.manual_seed(0)
    return split("vgg11_bn", shape=SHAPE, classes=CLASSES, cut=3, width=0.05, crossing={"pool": {"condense": 7}}).eval()


def guarded(model, *links):
    guard = Guard(*links)
    guard.setup(latent=model.latent_shape, classes=CLASSES, sigma=guard.sigma)
    guard.attach(model.encoder)
    return guard.eval()


@pytest.fixture(scope="session")
def shipped(tmp_path_factory):
    """Bytes cross: four bits a number."""
    model = network()
    guard = guarded(model, Noise(0.1), create_defence("dropout", rate=0.3), Wire(bits=4))
    return model, guard, export(model, guard, tmp_path_factory.mktemp("ship") / "artifact")


@pytest.fixture(scope="session")
def floats(tmp_path_factory):
    """The folder of an artifact whose wire is float32."""
    model = network()
    return export(model, guarded(model, Noise(0.1)), tmp_path_factory.mktemp("ship") / "floats")


@pytest.fixture(scope="session")
def audited(tmp_path_factory):
    """An artifact that several files send from."""
    return audited_artifact(tmp_path_factory.mktemp("ship") / "audited", Noise(0.3), Wire(bits=8))
