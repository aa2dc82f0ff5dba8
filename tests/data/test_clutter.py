"""The garment as it was, clutter around it and never in it, the same pixels on every machine."""

import hashlib

import numpy as np
import pytest
import torch

from attcem.data import load_data
from attcem.data.clutter import (
    GARMENT,
    GLYPHS,
    MARGIN,
    NUMBERS,
    SCALES,
    SIDE,
    WORDS,
    clutter_mask,
    draw_pictures,
    garment_corners,
    write,
)
from attcem.types import Images

SOME = 1200  # more than one block


@pytest.fixture(scope="module")
def plain():
    return load_data("fashion")


@pytest.fixture(scope="module")
def data():
    return load_data("clutter")


@pytest.fixture(scope="module")
def garments(plain):
    return plain.test.x[:SOME].numpy()


@pytest.fixture(scope="module")
def drawn(garments):
    return draw_pictures(garments, seed=7)


def test_the_seed_decides_every_pixel(garments, drawn):
    again, other = draw_pictures(garments, seed=7), draw_pictures(garments, seed=8)
    assert np.array_equal(drawn[0], again[0]) and np.array_equal(drawn[1], again[1])
    assert (drawn[0] != other[0]).any(axis=(1, 2, 3)).all()


def test_the_same_pixels_on_every_machine():
    pictures, corners = draw_pictures(np.full((50, GARMENT, GARMENT, 1), 9, dtype=np.uint8), seed=0)
    found = hashlib.sha256(pictures.tobytes() + corners.astype("<i8").tobytes()).hexdigest()
    assert found == "4de11948798877cf6867a53877c26910507c07621ac555d4fcc95af96a43d806"


def test_the_data_set_is_the_one_that_was_published(data):
    found = hashlib.sha256(b"".join(part.x.numpy().tobytes() for part in (data.private, data.test))).hexdigest()
    assert found == "46f57d72861f837bd8192eacf05ec9534d151b7157602cb277c2a69370619944"


def test_the_garment_is_whole_and_nothing_touches_it(garments, drawn):
    for picture, garment, (top, left) in zip(drawn[0], garments, drawn[1], strict=True):
        assert np.array_equal(picture[top : top + GARMENT, left : left + GARMENT], garment)
        around = picture[max(top - MARGIN, 0) : top + GARMENT + MARGIN, max(left - MARGIN, 0) : left + GARMENT + MARGIN]
        assert around.sum() == garment.sum(), "the margin is black"


def test_every_picture_has_clutter_and_it_may_be_anywhere(drawn):
    pictures, corners = drawn
    outside = pictures.copy()
    for picture, (top, left) in zip(outside, corners, strict=True):
        picture[top : top + GARMENT, left : left + GARMENT] = 0
    lit = (outside > 0).mean(axis=(1, 2, 3))
    assert lit.min() > 0.01 and 0.1 < lit.mean() < 0.3
    seen, covered = (outside > 0).any(axis=0)[..., 0], slice(SIDE - GARMENT - MARGIN, GARMENT + MARGIN)
    assert seen.sum() == SIDE**2 - seen[covered, covered].size, "wherever a box is, it covers the centre"
    assert len(np.unique(outside, axis=0)) == SOME
    assert all(np.unique(axis).tolist() == list(range(SIDE - GARMENT + 1)) for axis in corners.T)


def test_every_text_can_be_written_and_no_two_glyphs_are_alike():
    assert len(set(GLYPHS.values())) == len(GLYPHS)
    assert all(write(text, scale).shape[1] <= SIDE for text in (*WORDS.split(), *NUMBERS) for scale in SCALES)


def test_a_written_letter():
    rows = ["".join(".#"[int(lit)] for lit in row) for row in write("HI", 1)]
    assert rows == ["#.#.###", "#.#..#.", "###..#.", "#.#..#.", "#.#.###"]
    assert np.array_equal(write("HI", 2), np.kron(write("HI", 1), np.ones((2, 2), dtype=bool)))


def test_the_corner_of_any_picture_of_any_part(data, plain):
    """The draw is that of fashion, picture by picture, so the garments are known."""
    for part, original in ((data.test, plain.test), (data.public[:300], plain.public[:300])):
        corners = garment_corners(part)
        cut = [x[top : top + GARMENT, left : left + GARMENT] for x, (top, left) in zip(part.x, corners, strict=True)]
        assert torch.equal(torch.stack(cut), original.x) and torch.equal(part.y, original.y)


def test_the_mask_is_all_but_the_box(data):
    some = data.test[:20]
    mask = clutter_mask(some)
    assert mask.shape == (20, 1, SIDE, SIDE)
    for one, (top, left) in zip(mask[:, 0], garment_corners(some).tolist(), strict=True):
        assert not one[top : top + GARMENT, left : left + GARMENT].any()
        assert one.sum() == SIDE**2 - GARMENT**2


def test_a_picture_from_elsewhere_has_no_corner(data):
    with pytest.raises(ValueError, match="load_data"):
        garment_corners(Images(255 - data.test.x[:1], data.test.y[:1]))


def test_parts_are_those_of_fashion(data, plain):
    """Copies of a garment are on one side although their surroundings differ; nothing else looks alike."""
    assert data.draw["sha256"] == plain.draw["sha256"] and data.draw["dropped"] == plain.draw["dropped"] > 0
    assert data.draw["duplicates"] == 0
    assert data.class_names == plain.class_names and data.shape == (1, SIDE, SIDE)
