"""The recommendation and how sure it is, on tables whose answer is known."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from attcem.cut import Candidate, Measured, Place, advise, choose, recommend, table
from attcem.cut.choose import hiding_most


def tables(levels: Sequence[float], spread: float = 0.0, seeds: int = 3, images: int = 40) -> list[np.ndarray]:
    """Levels of several places; seeds differ by about `spread`, in another way at each place."""
    rng = np.random.default_rng(1)
    return [level + spread * rng.standard_normal((seeds, 1)) + np.zeros((seeds, images)) for level in levels]


def test_it_takes_what_hides_most_of_what_is_accurate_enough():
    accuracy, mse = np.array([[0.9], [0.89], [0.7]]), np.array([[0.01], [0.04], [0.09]])
    picked = [int(hiding_most(accuracy, mse, lose=lose)[0]) for lose in (0.0, 0.02, 0.3)]
    assert picked == [0, 1, 2]


def test_it_is_sure_where_places_differ_by_more_than_seeds_do():
    choice = choose(tables([0.9, 0.9]), tables([0.01, 0.04], 0.001), lose=0.02)
    assert choice.best == 1 and choice.sure == 1


def test_it_is_not_sure_where_seeds_differ_by_more_than_places_do():
    choice = choose(tables([0.9] * 2), tables([0.03, 0.031], 0.01), lose=0.02)
    assert 0.1 < choice.sure < 0.9 and sum(choice.shares) == pytest.approx(1)


def test_what_is_hard_everywhere_is_no_doubt():
    """Images differ a hundred times more than places, but alike at both."""
    hard = np.random.default_rng(0).random((1, 50))
    assert choose(tables([0.9] * 2, seeds=1, images=50), [hard, hard + 0.01], lose=0).shares == [0, 1]


def test_doubt_of_accuracy_counts_as_well():
    right = [np.repeat([[1, 0]], 50, 1).reshape(1, 100), np.roll(np.repeat([[1, 0]], 50, 1).reshape(1, 100), 47)]
    choice = choose([each.astype(float) for each in right], tables([0.01, 0.09], seeds=1, images=100), lose=0.02)
    assert choice.best == 1 and 0.5 < choice.sure < 1


def candidate(cut: int, mse: float, multiplications: float, seeds: int = 1) -> Candidate:
    found = Measured([1, 1, 0, 1], [mse] * 4, 0.3, 0.1, multiplications, 100.0, 64, 256, 0.2, 0.5, None)
    return Candidate(Place(cut, f"unit{cut}", "plain", None), [found] * seeds)


def test_the_device_must_be_able_to_compute_it():
    candidates = [candidate(1, 0.02, 10), candidate(2, 0.08, 101)]
    assert recommend(candidates, lose=0.02, compute=math.inf)[0].place.cut == 2
    best, shares = recommend(candidates, lose=0.02, compute=0.5)
    assert best.place.cut == 1 and list(shares.values()) == [1]
    lines = table(candidates, best, shares)
    assert "← recommended" in lines[1] and "too dear" in lines[2] and "0.800 " in lines[2]
    with pytest.raises(ValueError, match=r"give 0\.100"):
        recommend(candidates, lose=0.02, compute=0.05)


@pytest.mark.parametrize("seeds", [1, 3])
def test_one_seed_is_said_to_be_one(seeds):
    candidates = [candidate(1, 0.02, 10, seeds), candidate(2, 0.08, 90, seeds)]
    said = " ".join(advise(*recommend(candidates, lose=0, compute=1)))
    assert ("one seed" in said) == (seeds == 1) and "--model.cut 2, plain (after unit2)" in said and "100.0" in said
