"""Gaps that were planted are found, none are where none were, and few seeds are said."""

from __future__ import annotations

import numpy as np
import pytest

from attcem.compare import FORMATS
from attcem.compare.reach import scores_at
from attcem.metrics.stats import holm, paired_bootstrap
from attcem.runs import curves_of
from tests.compare.planted import BOUND, bound, made, noise, planted, quickly, row


def test_a_planted_gap_is_found_with_its_size_between_two_strengths():
    found = quickly(planted(0.005), at_accuracy=0.65)
    ours, plain = row(found, BOUND), row(found, "noise")
    assert found.reference == "noise" and plain.verdict == "reference"
    assert plain.mean == pytest.approx(0.045, abs=1e-6) and ours.mean == pytest.approx(0.05, abs=1e-6)
    assert ours.difference == pytest.approx(0.005, abs=1e-6)
    assert 0.004 < ours.difference_low <= 0.005 <= ours.difference_high < 0.006
    assert ours.p < 0.01 and ours.wilcoxon_p < 0.01
    assert ours.verdict == "hides more" and ours.notes == ()
    assert (ours.strengths, ours.seeds) == (3, 3)


def test_what_is_better_depends_on_the_metric_and_on_the_side():
    runs = planted(0.005)
    assert row(quickly(runs, at_accuracy=0.65, metric="ssim"), BOUND).verdict == "hides more"
    assert row(quickly(runs, at_accuracy=0.65, metric="ssim"), BOUND).difference == pytest.approx(-0.05, abs=1e-5)
    assert row(quickly(runs, at_accuracy=0.65, metric="psnr"), BOUND).verdict == "hides more"
    assert row(quickly(runs, at_accuracy=0.65, against=BOUND), "noise").verdict == "hides less"


def test_identical_defences_are_not_significant():
    ours = row(quickly(planted(0.0, jitter=0.0), at_accuracy=0.65), BOUND)
    assert ours.verdict == "not significant" and ours.difference == pytest.approx(0, abs=1e-8)


def test_equal_defences_whose_seeds_scatter_are_seldom_called_different():
    alarms = 0
    for trial in range(40):
        rng = np.random.default_rng(trial)
        runs = [
            made(defence, accuracy, 0.05 + 0.002 * rng.normal(), seed, jitter=0.004)
            for seed in range(3)
            for defence in (noise(1), bound(1))
            for accuracy in (0.7,)
        ]
        alarms += row(quickly(runs, at_accuracy=0.7, seed=trial), BOUND).verdict != "not significant"
    assert alarms <= 4


@pytest.mark.parametrize(
    ("seeds", "note"), [(1, "only one seed: another training may reverse this result"), (2, "only 2 seeds")]
)
def test_few_seeds_are_said_in_the_line(seeds, note):
    found = quickly(planted(0.005, seeds=seeds), at_accuracy=0.65)
    assert note in row(found, BOUND).notes
    assert note in FORMATS["text"](found).splitlines()[-1]


def test_a_difference_is_over_the_seeds_that_both_have():
    runs = planted(0.005)
    fewer = [run for run in runs if run.seed == 0 or "bound" not in run.config["defence"]]
    ours = row(quickly(fewer, at_accuracy=0.65), BOUND)
    assert ours.seeds == 1 and "only one seed: another training may reverse this result" in ours.notes
    apart = [run for run in runs if (run.seed == 0) == ("bound" in run.config["defence"])]
    assert row(quickly(apart, at_accuracy=0.65), BOUND).verdict == "no seed in common with the reference"


def test_seeds_that_do_not_reach_or_lack_a_strength_are_mentioned():
    runs = [run for run in planted(0.005) if not (run.seed == 2 and run.config["defence"] == bound(4))]
    ours = row(quickly(runs, at_accuracy=0.65), BOUND)
    assert "in the range of 2 of 3 seeds" in ours.notes and "not every seed has every strength" in ours.notes


def test_p_are_corrected_over_the_comparisons():
    rng = np.random.default_rng(1)
    third = {"gated": {"lam": 1.0}}
    runs = [
        made(defence, 0.7, mse + 0.001 * rng.normal(), seed, jitter=0.003)
        for seed in range(4)
        for defence, mse in ((noise(1), 0.04), (bound(1), 0.0418), (third, 0.0405))
    ]
    tables = {c.name: np.stack(list(scores_at(c, 0.7, "worst/mse").values())) for c in curves_of(runs)}
    raw = [paired_bootstrap(tables[name], tables["noise"], draws=400).p for name in (BOUND, "gated")]
    found = quickly(runs, at_accuracy=0.7)
    assert [row(found, name).p for name in (BOUND, "gated")] == holm(raw) != raw


def test_deviation_is_over_seeds():
    runs = [made(defence, 0.7, 0.04 + 0.01 * seed, seed) for defence in (noise(1), bound(1)) for seed in range(3)]
    found = quickly(runs, at_accuracy=0.7)
    assert row(found, "noise").mean == pytest.approx(0.05) and row(found, "noise").std == pytest.approx(0.01)
