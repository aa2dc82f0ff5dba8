"""Benchmarks are run by hand: what they import must not move away unnoticed."""

from importlib import import_module
from pathlib import Path

import benchmarks
import pytest
from benchmarks.defences import ELSEWHERE, GOALS
from benchmarks.step import Step, surrogate, two_passes
from benchmarks.surrogates import check_same_gradients

from attcem.defences import DEFENCES

NAMES = sorted(path.stem for path in Path(benchmarks.__file__).parent.glob("[a-z]*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_finds_what_it_imports(name):
    import_module(f"benchmarks.{name}")


def test_every_defence_has_a_goal_for_its_step():
    assert set(GOALS) == set(DEFENCES) - ELSEWHERE


def test_the_two_ways_to_mix_gradients_that_are_timed_do_the_same():
    check_same_gradients(Step(surrogate("bound(diag)")), Step(surrogate("bound(diag)"), two_passes))
