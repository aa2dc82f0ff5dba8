"""Pictures to attack, and what an attack makes of them next to the mean image."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace

import pytest
import torch

from attcem.attacks import BASELINES, Attack, Reconstruction, flat_grid
from attcem.data import Data
from attcem.defences import Defence, Undefended
from attcem.metrics import METRICS
from attcem.threat import build_view
from attcem.types import Images, View
from tests.conftest import shrink
from tests.probes import split_with


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """An inverter of latents without layout has most of its weights in dense layers: fewer show the same."""
    monkeypatch.setattr(flat_grid, "HIDDEN", 64)


@pytest.fixture(scope="session")
def pictures(fashion: Data) -> Data:
    return shrink(fashion, private=10, validation=10, public=1500, test=100)


@pytest.fixture(scope="session")
def thumbnails(fashion: Data) -> Data:
    """The same pictures at half the size: what an attack gets out of them takes a fraction of the time."""
    return smaller(shrink(fashion, private=10, validation=10, public=600, test=100))


def smaller(data: Data) -> Data:
    return replace(data, **{part: halve(getattr(data, part)) for part in ("private", "validation", "public", "test")})


def halve(images: Images) -> Images:
    """Means of 2 × 2 pixels."""
    n, h, w, c = images.x.shape
    means = images.x.view(n, h // 2, 2, w // 2, 2, c).float().mean((2, 4))
    return Images(means.round().to(torch.uint8), images.y)


@pytest.fixture(scope="session")
def many(fashion: Data) -> Data:
    """As many to attack as a probe's score needs."""
    return shrink(fashion, private=10, validation=10, public=1500, test=200)


@pytest.fixture(scope="session")
def many_thumbnails(many: Data) -> Data:
    return smaller(many)


def view_of(
    encoder, data: Data, guard: Defence | None = None, *, threat: str, images: int = 100
) -> tuple[View, Images]:
    victim = split_with(encoder, data.shape)
    return build_view(victim, guard or Undefended(), data, images=images, threat=threat)


def at_most(settings, **most: int):
    """The same attack with no more of each of these efforts, in all that it is made of."""
    cut = {
        field.name: at_most(value, **most) if is_dataclass(value) else min(value, most[field.name])
        for field in fields(settings)
        if is_dataclass(value := getattr(settings, field.name)) or field.name in most
    }
    return replace(settings, **cut)


def attack_on(view: View, truth: Images, attack: Attack) -> tuple[Reconstruction, float, float]:
    """What it finds of all images it is meant for, its MSE, and that of the mean image."""
    found, truth = attack(view, seed=0), truth[: getattr(attack, "images", len(truth))]
    assert found.images.shape == truth.pixels().shape and found.images.min() >= 0 and found.images.max() <= 1
    mean = BASELINES["mean_image"](view, truth.y)
    mse, mean_mse = (METRICS["mse"](guess, truth.pixels()).mean().item() for guess in (found.images, mean))
    return found, mse, mean_mse
