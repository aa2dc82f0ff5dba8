"""Curves are compared where they are: between their runs, never beyond them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attcem.compare.reach import scores_at
from attcem.runs import curves_of
from tests.compare.planted import BOUND, bound, made, noise, planted, quickly, row


def test_on_a_run_the_value_is_that_runs():
    runs = planted(0.005, seeds=1)
    (curve, _) = curves_of(runs)
    run = next(run for run in runs if run.config["defence"] == noise(2))
    assert np.array_equal(scores_at(curve, 0.7, "worst/mse")[0], run.per_image["worst/mse"])
    assert row(quickly(runs, at_accuracy=0.7), "noise").mean == pytest.approx(run.per_image["worst/mse"].mean())


def test_between_two_runs_every_image_lies_on_its_own_line():
    runs = planted(0.005, seeds=1)
    (curve, _) = curves_of(runs)
    left, right = (next(run for run in runs if run.config["defence"] == noise(s)) for s in (2, 4))
    along = 0.25 * left.per_image["worst/mse"] + 0.75 * right.per_image["worst/mse"]
    assert scores_at(curve, 0.625, "worst/mse")[0] == pytest.approx(along, abs=1e-7)


def test_the_undefended_run_ends_every_curve_so_there_they_all_agree():
    runs = planted(0.005)
    found = quickly(runs, at_accuracy=0.9)
    assert [line.mean for line in found.rows] == pytest.approx([0.02, 0.02], abs=1e-6)
    assert row(found, BOUND).verdict == "not significant" and row(found, BOUND).difference == 0
    between = row(quickly(runs, at_accuracy=0.85), BOUND)
    assert between.difference == pytest.approx(0.0025, abs=1e-6)  # half way to a gap of 0.005


def test_an_undefended_run_that_is_not_the_most_accurate_is_no_part_of_a_curve():
    defended = [
        made(noise(1), 0.867, 0.00709),
        made(noise(2), 0.725, 0.01103),
        made(bound(1), 0.825, 0.01529),
        made(bound(2), 0.767, 0.01442),
    ]
    for runs in (defended, [made({}, 0.825, 0.00547), *defended]):
        found = quickly(runs, at_accuracy=0.825)
        assert row(found, "noise").mean == pytest.approx(0.00825, abs=1e-5)
        assert row(found, BOUND).mean == pytest.approx(0.01529, abs=1e-6)
        assert row(found, "noise").spans == "0.7250–0.8670"


def test_seeds_with_and_without_an_undefended_end_have_the_same_strengths():
    runs = [made(defence, 0.7, 0.04, seed) for defence in (noise(1), bound(1)) for seed in (0, 1)]
    runs += [made({"gmm": {"lam": lam}}, 0.8 - lam / 10, 0.04, seed) for lam in (0, 1) for seed in (0, 1)]
    runs += [made({}, 0.8, 0.02, 0), made({}, 0.6, 0.02, 1, flags=("weak",))]
    found = quickly(runs, at_accuracy=0.7)
    assert not any("not every seed has every strength" in line.notes for line in found.rows)
    assert math.isnan(row(found, "noise").area), "one seed's line is no area of the defence"
    assert not any(line.flagged for line in found.rows), "only a run that ends a curve can mark it"


def test_the_undefended_run_of_another_training_is_not_an_end():
    runs = [run for run in planted(0.005) if run.config["defence"]]
    runs += [made({}, 0.9, 0.02, seed, train={"epochs": 50}) for seed in range(3)]
    with pytest.raises(ValueError, match=r"0\.8500 is outside the range of noise \(0\.6000–0\.8000\)"):
        quickly(runs, at_accuracy=0.85)


def test_nothing_is_extrapolated():
    runs = [
        *planted(0.005),
        *(made({"gmm": {"lam": lam}}, 0.9 - lam / 100, 0.03, s) for s in range(3) for lam in (1, 5)),
    ]
    found = quickly(runs, at_accuracy=0.65)
    beyond = row(found, "gmm")
    assert beyond.verdict == "outside its range" and math.isnan(beyond.mean) and math.isnan(beyond.p)
    assert row(found, BOUND).p == row(quickly(planted(0.005), at_accuracy=0.65), BOUND).p  # one test, not two


def test_without_an_accuracy_it_is_the_highest_that_all_reach_with_their_defence_on():
    runs = [*planted(0.005), *(made({"gmm": {"lam": 1}}, accuracy, 0.04, s) for s in range(3) for accuracy in (0.75,))]
    found = quickly(runs)
    assert found.accuracy == 0.75 and "highest" in found.chosen
    late = [made({"gmm": {"lam": 1}}, 0.85, 0.04, s) for s in range(3)]
    found = quickly([*planted(0.005), *late])
    assert found.accuracy == 0.85 and "lowest" in found.chosen and row(found, "gmm").mean == pytest.approx(0.04)


def test_without_a_common_accuracy_the_error_names_the_spans():
    runs = [made(noise(1), 0.7, 0.04), made(noise(2), 0.6, 0.05), made(bound(1), 0.8, 0.04)]
    with pytest.raises(ValueError, match=r"noise 0\.6000–0\.7000, noise \+ bound only 0\.8000.*--at-accuracy"):
        quickly(runs)


def test_one_strength_is_compared_at_its_own_accuracy_and_nowhere_else():
    runs = [run for run in planted(0.005) if run.config["defence"]]
    runs += [made({"gmm": {"lam": 1}}, 0.71234, 0.05, seed) for seed in range(3)]
    assert row(quickly(runs, at_accuracy=0.7123), "gmm").mean == pytest.approx(0.05, abs=1e-6)
    elsewhere = row(quickly(runs, at_accuracy=0.7), "gmm")
    assert elsewhere.verdict == "outside its range" and "only one strength: run more" in elsewhere.notes


def test_an_accuracy_below_the_only_one_is_refused_with_what_is_covered():
    runs = [made(noise(1), 0.8417, 0.04), made(bound(1), 0.8417, 0.05)]
    with pytest.raises(ValueError, match=r"accuracy 0\.8200 is outside the range of noise \(only 0\.8417\): choose"):
        quickly(runs, at_accuracy=0.82)


def test_the_area_is_the_mean_height_over_the_common_span():
    found = quickly(planted(0.005))
    assert found.area_span == (0.6, 0.9)
    assert row(found, "noise").area == pytest.approx(0.035, abs=1e-6)  # from 0.02 straight to 0.05
    assert row(found, BOUND).area == pytest.approx(0.035 + 0.005 * 2 / 3 + 0.0025 / 3, abs=1e-6)
    assert row(found, "noise").area_std == pytest.approx(0, abs=1e-6)
