"""What sets how hard a defence protects: declared by the defence, recorded with the result, guessed for older ones."""

import pytest

from attcem.defences import DEFENCES, create_defence, option_types
from attcem.runs import curves_of, settings_of
from attcem.runs.config import strengths
from tests.report.made import make_result


@pytest.mark.parametrize("kind", sorted(DEFENCES.keys() - {"none"}))
def test_every_defence_declares_one_of_its_options(kind):
    assert DEFENCES[kind].strength in option_types(kind)


@pytest.mark.parametrize("kind", ["noise", "bound", "gated", "gmm", "hybrid", "slot"])
def test_published_results_which_do_not_say_are_read_as_their_defences_declare(kind):
    """`lam`, or else the first number."""
    options = {name: getattr(create_defence(kind), name, None) for name in option_types(kind)}
    assert strengths(make_result(defence={kind: options})) == {f"{kind}.{DEFENCES[kind].strength}"}


def test_what_is_recorded_counts_if_the_link_has_it():
    run = make_result(defence=[{"noise": {"sigma": 0.1}}, {"mine:Own": {"width": 3, "force": 2.0}}])
    assert strengths(run) == {"noise.sigma", "own.width"}
    run.strengths = {"noise": "sigma", "own": "force"}
    assert strengths(run) == {"noise.sigma", "own.force"}
    run.strengths = {"own": "gone"}
    assert strengths(run) == {"noise.sigma", "own.width"}


def test_names_tell_it_and_curves_run_along_it():
    runs = [make_result(defence={"own": {"width": width, "force": f}}) for width in (3, 4) for f in (1.0, 2.0)]
    for run in runs:
        run.strengths = {"own": "force"}
    assert [curve.name for curve in curves_of(runs)] == ["own(width=3)", "own(width=4)"]
    assert settings_of(runs[:1])[0].name == "own force=1"
