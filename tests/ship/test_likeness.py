"""Fingerprints: near-duplicates share them, other pictures do not, and without the secret they are noise."""

from itertools import pairwise

import numpy as np
from PIL import Image

from attcem.ship.likeness import NEAR, distances, exact_fingerprint, near_fingerprint, overlaps, thumbnail

SECRET = bytes(range(32))


def apart(one, other, secret=SECRET):
    fingerprint = np.frombuffer(near_fingerprint(other, secret), np.uint8)
    return int(distances(near_fingerprint(one, secret), fingerprint[None])[0])


def pictures(fashion, count=200):
    return fashion.test.x[:count].permute(0, 3, 1, 2).numpy().astype(np.float32) / 255


def test_a_thumbnail_is_the_mean_of_each_cell():
    grey = np.random.default_rng(0).random((16, 24))
    assert np.allclose(thumbnail(grey), grey.reshape(8, 2, 8, 3).mean((1, 3)))
    assert np.allclose(overlaps(28).sum(1), 1) and np.allclose(overlaps(28).sum(0), 8 / 28)
    small = np.asarray(Image.fromarray(grey.astype(np.float32)).resize((8, 8), Image.Resampling.BOX))
    assert np.allclose(thumbnail(grey), small, atol=1e-5)


def test_small_changes_stay_near_and_other_pictures_do_not(fashion):
    rng = np.random.default_rng(0)
    given = pictures(fashion)
    near = [apart(x, np.clip(x + 0.02 * rng.normal(size=x.shape), 0, 1)) for x in given]
    dimmed = [apart(x, 0.7 * x + 0.1) for x in given]
    assert max(near) <= NEAR and max(dimmed) <= 1
    others = [apart(x, y) for x, y in pairwise(given)]
    assert np.mean(np.array(others) <= NEAR) < 0.01


def test_another_secret_gives_another_fingerprint(fashion):
    (x,) = pictures(fashion, 1)
    ours, theirs = near_fingerprint(x, SECRET), near_fingerprint(x, b"other" * 7)
    assert 80 < int(distances(ours, np.frombuffer(theirs, np.uint8)[None])[0]) < 176  # half of 256 bits
    assert exact_fingerprint(x, SECRET) != exact_fingerprint(x, b"other" * 7)


def test_an_exact_fingerprint_is_that_of_the_grey_levels(fashion):
    (x,) = pictures(fashion, 1)
    changed = x.copy()
    changed[0, 0, 0] += 1 / 255
    assert (
        exact_fingerprint(x, SECRET) == exact_fingerprint(x + 0.1 / 255, SECRET) != exact_fingerprint(changed, SECRET)
    )
