"""Colours, sheets and numbers of the pictures, on arrays made by hand."""

import io

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from PIL import Image

from attcem.explain.latent import legend_of, pca, principal
from attcem.explain.look import Scene, Sight
from attcem.explain.sheet import (
    AMOUNT,
    BLUE,
    KINDS,
    MORE_OR_LESS,
    ORANGE,
    OTHER,
    chosen_rows,
    cover_of,
    kinds,
    png,
    put_picture,
    rows,
    short,
    styled,
)
from attcem.explain.slots import slots
from attcem.figures import style


@pytest.fixture(autouse=True)
def with_style():
    with style.styled(), styled():
        yield


def opened(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def test_equal_is_white_and_the_ends_are_full_colours():
    np.testing.assert_allclose(MORE_OR_LESS([0.0, 0.5, 1.0]), [to_rgba(c) for c in (BLUE, "white", ORANGE)], atol=0.01)


def test_more_is_darker_and_nothing_known_is_grey():
    found = AMOUNT([0.0, 0.5, 1.0, np.nan])
    assert (np.diff(found[:3].sum(1)) < 0).all()
    np.testing.assert_allclose(found[3], to_rgba(OTHER))


def test_ten_kinds_differ_clearly():
    colours = kinds(np.arange(12))
    apart = np.abs(colours[:10, None] - colours[None, :10]).sum(2) + 1000 * np.eye(len(KINDS))
    assert apart.min() > 0.3
    np.testing.assert_allclose(colours[10:], [to_rgba(OTHER)] * 2)


def test_a_cover_is_as_strong_as_a_position_weighs_more_or_less():
    found = cover_of(np.array([[4.0, 0.5], [0.0, 0.0]]))
    np.testing.assert_allclose(found[0], [to_rgba(ORANGE, 0.75), to_rgba(BLUE, 0.75)], atol=0.01)
    assert cover_of(np.ones((2, 2)))[..., 3].max() == 0


def test_a_row_keeps_pixels_where_they_belong_under_any_name():
    figure, axes = rows([short("×1.8 – σ 上衣 $x" + "W" * 80)], 40, 20)
    put_picture(axes, 0, 0, 20, np.array([[(0, 255, 0)], [(9, 9, 9)]], np.uint8))
    put_picture(axes, 20, 0, 20, np.full((2, 2, 3), 200, np.uint8), np.array([[(1.0, 0, 0, 1), (0, 0, 0, 0)]]))
    drawn = opened(png(figure))
    inside = drawn[-69:-29, -109:-29]  # 20 and 40 pixels of the page, two dots each, before the margin
    assert tuple(inside[5, 20]) == (0, 255, 0) and tuple(inside[35, 20]) == (9, 9, 9)
    assert tuple(inside[5, 45]) == (255, 0, 0) and tuple(inside[35, 75]) == (200, 200, 200)
    assert drawn[:, :-110].min() < 100, "the name is written"


def test_directions_are_those_of_the_covariance():
    z = np.random.default_rng(0).normal(size=(60, 5)) * [5, 3, 1, 1, 1] + 7
    places, share = principal(z, 2)
    values, vectors = np.linalg.eigh(np.cov(z.T, bias=True))
    np.testing.assert_allclose(share, values[::-1][:2] / values.sum(), rtol=1e-9)
    np.testing.assert_allclose(np.abs(places), np.abs((z - z.mean(0)) @ vectors[:, ::-1][:, :2]), rtol=1e-6, atol=1e-9)


def scene(n=60, classes=3, latent=(4, 3, 3), **changes) -> Scene:
    rng = np.random.default_rng(0)
    made = {
        "x": rng.integers(0, 256, (n, 8, 8, 3), np.uint8),
        "y": np.arange(n) % classes,
        "z": rng.normal(size=(n, *latent)),
        "names": tuple(f"class {c}" for c in range(classes)),
        "sigma": 0.1,
        "chain": "noise",
        "blind": [],
        "sights": [],
        "epochs": [],
    }
    return Scene(**made | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"z": np.zeros((60, 4))},
        {"latent": (1,)},
        {"n": 2, "classes": 2},
        {"classes": 30, "sigma": 0.0},
        {"sigma": 1e6},
    ],
)
def test_any_latent_can_be_drawn(changes):
    found = pca(scene(**changes))
    assert opened(found.png).std() > 1 and "nan" not in found.caption


def test_more_kinds_than_colours_share_one():
    assert legend_of(np.array([3, 7, 7])) == {3: 3, 7: 7}
    assert legend_of(np.array([3, 7, -1])) == {3: 3, 7: 7, -1: 10}
    legend = legend_of(np.array([*range(30), 12, 25]))
    assert len(legend) == 11 and legend[-1] == 10 and {12, 25} <= set(legend)
    assert legend_of(np.array([40, 41])) == {40: 0, 41: 1}


def test_the_rows_of_many_classes_are_those_that_score_most():
    y = np.repeat(np.arange(30), 2)
    assert chosen_rows(y, lambda c: c % 15) == [*range(9, 15), *range(24, 30)]
    assert chosen_rows(y[:8], lambda c: c) == [0, 1, 2, 3]


def test_slots_of_many_classes_with_many_slots():
    resp = np.random.default_rng(0).dirichlet(np.ones(40), (60, 9))
    sight = Sight("slot", "slot", np.arange(60), None, resp, {})
    usage, where = slots(scene(classes=20, sights=[sight]))
    assert "12 of 20 classes" in usage.caption and "12 of 20 classes" in where.caption
    one = Sight("bound", "bound", np.arange(60), None, resp[:, :1], {})
    assert [e.file for e in slots(scene(sights=[one]))] == ["usage-bound.png", "slots-bound.png"]


def test_one_slot_for_everything_is_named():
    resp = np.zeros((60, 1, 4))
    resp[:, :, 2] = 1
    usage, _ = slots(scene(sights=[Sight("slot", "slot", np.arange(60), None, resp, {})]))
    assert usage.caption.startswith("One slot holds nearly everything") and "1.0 equal" in usage.caption
