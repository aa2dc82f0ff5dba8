"""Pictures to attack, and what an attack makes of them next to the mean image."""

from __future__ import annotations

import pytest

from attcem.attacks import BASELINES, Attack, Reconstruction
from attcem.data import Data
from attcem.defences import Defence, Undefended
from attcem.metrics import METRICS
from attcem.threat import build_view
from attcem.types import Images, View
from tests.conftest import shrink
from tests.probes import split_with


@pytest.fixture(scope="session")
def pictures(fashion: Data) -> Data:
    return shrink(fashion, private=10, validation=10, public=1500, test=100)


@pytest.fixture(scope="session")
def many(fashion: Data) -> Data:
    """As many to attack as a probe's score needs."""
    return shrink(fashion, private=10, validation=10, public=1500, test=200)


def view_of(
    encoder, data: Data, guard: Defence | None = None, *, threat: str, images: int = 100
) -> tuple[View, Images]:
    return build_view(split_with(encoder), guard or Undefended(), data, images=images, threat=threat)


def attack_on(view: View, truth: Images, attack: Attack) -> tuple[Reconstruction, float, float]:
    """What it finds of all images it is meant for, its MSE, and that of the mean image."""
    found, truth = attack(view, seed=0), truth[: getattr(attack, "images", len(truth))]
    assert found.images.shape == truth.pixels().shape and found.images.min() >= 0 and found.images.max() <= 1
    mean = BASELINES["mean_image"](view, truth.y)
    mse, mean_mse = (METRICS["mse"](guess, truth.pixels()).mean().item() for guess in (found.images, mean))
    return found, mse, mean_mse
