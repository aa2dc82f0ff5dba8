"""Statistics against SciPy, against slow loops, and against truths that were planted."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from attcem.metrics import stats
from attcem.metrics.stats import (
    area_under,
    bootstrap_interval,
    few_seeds,
    holm,
    interpolate,
    paired_bootstrap,
    resampled_means,
    share_interval,
    wilcoxon_signed_rank,
)

CHANCES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def table(seeds: int, images: int, seed: int = 0, between: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (
        rng.gamma(2.0, 0.01, (1, images))
        + between * rng.normal(size=(seeds, 1))
        + 0.002 * rng.normal(size=(seeds, images))
    )


def test_the_interval_over_images_agrees_with_scipy():
    scores = table(1, 200)
    theirs = scipy.stats.bootstrap(
        (scores[0],), np.mean, n_resamples=10_000, method="percentile", random_state=np.random.default_rng(1)
    ).confidence_interval
    error = scores.std() / math.sqrt(200)
    assert bootstrap_interval(scores) == pytest.approx((theirs.low, theirs.high), abs=0.15 * error)


@pytest.mark.parametrize("seeds", [1, 2, 4])
def test_resampling_agrees_with_the_slow_loop(seeds):
    scores = table(seeds, 30, between=0.01)
    level = scores.mean(1)
    moved = scores + (few_seeds(seeds) - 1) * (level - level.mean())[:, None]
    rng, slow = np.random.default_rng(1), []
    for _ in range(4000):
        images = rng.integers(30, size=30)
        drawn = [moved[s, i] for s in rng.integers(seeds, size=seeds) for i in images]
        slow.append(sum(drawn) / len(drawn))
    fast = resampled_means(scores, draws=4000)
    spread = np.std(slow)
    assert fast.shape == (4000,)
    assert fast.mean() == pytest.approx(np.mean(slow), abs=0.1 * spread)
    assert fast.std() == pytest.approx(spread, rel=0.06)
    assert np.percentile(fast, [10, 90]) == pytest.approx(np.percentile(slow, [10, 90]), abs=0.2 * spread)


def test_the_number_of_draws_is_kept_beyond_one_chunk():
    assert len(resampled_means(table(2, 5), draws=stats.CHUNK + 7)) == stats.CHUNK + 7


def test_the_same_seed_gives_the_same_interval_and_another_a_slightly_different_one():
    scores = table(3, 50, between=0.01)
    assert bootstrap_interval(scores, seed=4) == bootstrap_interval(scores, seed=4)
    assert bootstrap_interval(scores, seed=4) != bootstrap_interval(scores, seed=5)


def test_pairing_finds_a_gap_far_below_the_spread_over_images():
    theirs = table(3, 200)
    ours = theirs + 0.001 + 0.0002 * np.random.default_rng(9).normal(size=theirs.shape)
    found = paired_bootstrap(ours, theirs, draws=2000)
    assert found.low < 0.001 < found.high and found.high - found.low < 0.0003
    assert found.mean == pytest.approx((ours - theirs).mean())
    assert found.p == pytest.approx(2 / 2001)
    low, high = bootstrap_interval(ours, draws=2000)
    assert high - low > 0.002  # the scores themselves are ten times as uncertain


def test_a_difference_the_other_way_round_is_mirrored():
    ours, theirs = table(3, 60, 1, between=0.002), table(3, 60, 2, between=0.002)
    there, back = paired_bootstrap(ours, theirs, draws=1000), paired_bootstrap(theirs, ours, draws=1000)
    assert (back.mean, back.low, back.high, back.p) == pytest.approx((-there.mean, -there.high, -there.low, there.p))


def test_no_difference_at_all_has_p_one():
    scores = table(3, 40)
    found = paired_bootstrap(scores, scores, draws=200)
    assert (found.mean, found.low, found.high, found.p) == (0, 0, 0, 1)


def false_alarms(seeds: int) -> int:
    found = 0
    for trial in range(100):
        same = [table(seeds, 40, 1000 * trial + which, between=0.01) for which in (0, 1)]
        found += paired_bootstrap(*same, draws=400, seed=trial).p < 0.05
    return found


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_equal_defences_differ_in_about_one_of_twenty_tries_even_with_few_seeds(seeds):
    assert false_alarms(seeds) <= 10


@pytest.mark.parametrize("seeds", [2, 3])
def test_resampling_few_seeds_without_widening_would_cry_wolf(seeds, monkeypatch):
    monkeypatch.setattr(stats, "few_seeds", lambda seeds: 1.0)
    assert false_alarms(seeds) > 15


def test_the_widening_for_few_seeds_is_students_and_fades():
    assert few_seeds(1) == 1
    assert few_seeds(2) == pytest.approx(math.sqrt(2) * 12.706 / 1.960, rel=1e-3)
    assert few_seeds(3) == pytest.approx(math.sqrt(1.5) * 4.303 / 1.960, rel=1e-3)
    assert few_seeds(2000) == pytest.approx(1, abs=2e-3)


def test_wilcoxon_agrees_with_counting_all_signs_and_with_scipy():
    differences = np.array([0.31, -0.12, 0.52, 0.25, -0.07, 0.44, 0.18, 0.09])
    ranks = np.argsort(np.argsort(np.abs(differences))) + 1
    middle = ranks.sum() / 2
    observed = abs(ranks[differences > 0].sum() - middle)
    sums = [sum(r for r, up in zip(ranks, signs, strict=True) if up) for signs in itertools.product((0, 1), repeat=8)]
    counted = np.mean([abs(total - middle) >= observed for total in sums])
    assert wilcoxon_signed_rank(differences) == pytest.approx(counted)
    many = np.random.default_rng(0).normal(0.1, 1, 300)
    assert wilcoxon_signed_rank(many) == scipy.stats.wilcoxon(many).pvalue


def test_wilcoxon_without_any_difference_has_p_one():
    assert wilcoxon_signed_rank(np.zeros(20)) == 1


@given(CHANCES, st.floats(0.001, 0.999))
def test_holm_rejects_what_the_step_down_rule_rejects(ps, alpha):
    rejected = set()
    for rank, index in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        if (len(ps) - rank) * ps[index] > alpha:
            break
        rejected.add(index)
    assert {index for index, p in enumerate(holm(ps)) if p <= alpha} == rejected


@given(CHANCES)
def test_holm_only_raises_and_keeps_the_order(ps):
    corrected = holm(ps)
    assert all(p <= raised <= 1 for p, raised in zip(ps, corrected, strict=True))
    assert [corrected[i] for i in sorted(range(len(ps)), key=lambda i: ps[i])] == sorted(corrected)


POINTS = st.lists(st.integers(0, 50), min_size=1, max_size=6, unique=True)


@given(POINTS, st.integers(0, 500), st.integers(0, 999))
def test_interpolation_agrees_with_numpy_inside_and_says_nothing_outside(places, tenths, seed):
    x, at = np.array(places) / 50, tenths / 500
    y = np.random.default_rng(seed).normal(size=(len(x), 3))
    found = interpolate(at, x, y)
    if not x.min() <= at <= x.max():
        assert found is None
        return
    order = np.argsort(x)
    assert found == pytest.approx(np.array([np.interp(at, x[order], y[order, i]) for i in range(3)]))


def test_interpolation_on_a_point_is_the_point_and_equal_places_are_averaged():
    x, y = np.array([0.9, 0.7, 0.8, 0.8]), np.array([[1.0], [5.0], [2.0], [4.0]])
    assert interpolate(0.9, x, y) == 1 and interpolate(0.7, x, y) == 5 and interpolate(0.8, x, y) == 3


@given(st.lists(st.integers(0, 50), min_size=2, max_size=6, unique=True), st.integers(0, 999))
def test_the_area_is_the_mean_height_of_a_fine_walk(places, seed):
    rng = np.random.default_rng(seed)
    x, y = np.array(places) / 50, rng.normal(size=len(places))
    low, high = x.min() + 0.1 * np.ptp(x), x.max()
    order = np.argsort(x)
    middles = low + (np.arange(20_000) + 0.5) / 20_000 * (high - low)
    assert area_under(x, y, low, high) == pytest.approx(np.interp(middles, x[order], y[order]).mean(), abs=1e-5)


def test_an_area_beyond_the_points_is_not_made_up():
    x, y = np.array([0.5, 0.8]), np.array([1.0, 2.0])
    assert math.isnan(area_under(x, y, 0.4, 0.7)) and math.isnan(area_under(x, y, 0.6, 0.9))
    with pytest.raises(ValueError, match="low < high"):
        area_under(x, y, 0.7, 0.7)


def test_the_interval_of_a_share_is_wilson_s_where_answers_are_independent():
    right = np.array([1.0] * 3 + [0.0] * 7)
    assert share_interval(right) == pytest.approx((0.1078, 0.6032), abs=1e-4)  # tables of Wilson's interval: 3 of 10
    assert share_interval(np.zeros(20))[0] == 0 and share_interval(np.zeros(20))[1] == pytest.approx(0.1611, abs=1e-4)


def test_answers_that_come_in_groups_say_less():
    right = np.repeat([1.0, 0.0, 0.0, 1.0, 0.0], 20)  # five people, of each all photos or none
    low, high = share_interval(right, np.repeat(np.arange(5), 20))
    assert (low, high) == pytest.approx(share_interval(np.array([1.0, 0.0, 0.0, 1.0, 0.0])), abs=0.01)
    mixed = np.tile(right, 1)[np.random.default_rng(0).permutation(100)]
    loose, tight = share_interval(mixed, np.repeat(np.arange(5), 20)), share_interval(mixed)
    assert high - low > 1.5 * (loose[1] - loose[0]) and loose[1] - loose[0] >= tight[1] - tight[0]
    nobody = share_interval(np.zeros(100), np.repeat(np.arange(5), 20))
    assert nobody == share_interval(np.zeros(5)), "where all agree each person counts once"
