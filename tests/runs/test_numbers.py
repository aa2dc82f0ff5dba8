"""Means over seeds, and numbers as a page shows them."""

import math
import statistics

import numpy as np
import pytest

from attcem.runs.numbers import amount, is_number, map_numbers, mean, mean_and_spread, ratio, spread


def test_mean_and_sample_deviation_are_the_textbook_ones_over_what_was_measured():
    values = [0.2, 0.5, 0.9]
    assert mean([*values, math.nan, None]) == pytest.approx(statistics.mean(values))
    assert spread([*values, math.inf]) == pytest.approx(statistics.stdev(values))
    assert mean([0.3]) == 0.3 and math.isnan(spread([0.3])) and math.isnan(mean([]))
    assert mean_and_spread(values, ratio) == "0.533 ± 0.351" and mean_and_spread([0.3], ratio) == "0.300"
    assert mean_and_spread([], ratio) == "–"


def test_a_switch_is_no_number():
    assert is_number(0) and is_number(np.float32(1)) and not is_number(True) and not is_number("1")


def test_every_float_is_changed_at_any_depth_and_nothing_else():
    tree = {"a": [1, 0.5, {"b": (np.float32(2), True, None, "c")}]}
    assert map_numbers(tree, lambda value: -value) == {"a": [1, -0.5, {"b": [-2.0, True, None, "c"]}]}


def test_steps_of_an_effort_are_in_order_with_all_last():
    assert sorted(["all", "16", "4"], key=amount) == ["4", "16", "all"]
