"""A result says what its own run found; what its undefended twin tells is added where both are seen."""

import json
import re
import shutil
from dataclasses import replace

import pytest

from attcem.cli import main
from attcem.compare import compare
from attcem.figures.group import groups_of
from attcem.report import render
from attcem.runs import curves_of, find_twins, with_twins
from attcem.types import Result
from tests.compare.planted import bound, made, noise
from tests.report.made import scores
from tests.tiny_run import make_tiny_run

WEAK = "on the undefended twin the attacks reach 12.0 dB, below 18: too weak to judge by"


def undefended(psnr=12.0, **options):
    return replace(made({}, 0.9, 0.02, **options), worst=scores(0.02, psnr=psnr))


@pytest.mark.parametrize(
    ("other", "is_twin"),
    [
        ({}, True),
        ({"name": "another", "data": {"name": "fashion", "seed": 0, "root": "/elsewhere"}}, True),
        ({"seed": 1}, False),
        ({"data": {"name": "fashion", "seed": 1}}, False),
        ({"train": {"epochs": 99}}, False),
        ({"model": {"backbone": "vgg11_bn", "cut": 6}}, False),
        ({"audit": {"suite": "demo", "images": 61}}, False),
    ],
)
def test_a_twin_differs_in_nothing_but_having_no_defence(other, is_twin):
    run, bare = made(noise(1), 0.8, 0.03), made({}, 0.9, 0.02, **other)
    assert find_twins([run, bare]) == [bare if is_twin else None, None]
    assert find_twins([run, made(noise(2), 0.8, 0.03)]) == [None, None]
    (curve,) = curves_of([run, bare])
    assert bool(curve.undefended) == is_twin, "a curve ends at the twin, and at no other run"


@pytest.mark.parametrize("written", [{}, None, {"none": {}}, ["none"], [{"none": {}}], []])
def test_no_defence_is_told_however_it_is_written(written):
    run, bare = made(noise(1), 0.8, 0.03), made({}, 0.9, 0.02)
    bare.config["defence"] = written
    assert find_twins([run, bare])[0] is bare


def test_another_version_of_the_suite_is_no_twin():
    run, bare = made(noise(1), 0.8, 0.03), made({}, 0.9, 0.02)
    run.suite, bare.suite = "demo-1+aaaaaaaa", "demo-2+bbbbbbbb"
    assert find_twins([run, bare]) == [None, None]


def test_attacks_that_cannot_break_the_twin_are_flagged_wherever_both_are_seen():
    runs = [undefended(), made(noise(1), 0.8, 0.03), made(bound(1), 0.8, 0.03)]
    assert [run.flags for run in with_twins(runs)] == [[], [WEAK], [WEAK]]
    assert [run.flags for run in with_twins(with_twins(runs))] == [[], [WEAK], [WEAK]], "said once"
    assert [run.flags for run in runs] == [[], [], []], "the runs themselves stay as they are"
    assert any(WEAK in flag for flag in compare(runs, at_accuracy=0.8, draws=10).flags)
    assert WEAK in render(runs) and WEAK not in render(runs[1:])
    (group,) = groups_of(runs)
    assert sum(bool(run.flags) for run in group.runs) == 2
    assert not any(run.flags for run in with_twins([undefended(psnr=18.5), *runs[1:]]))


@pytest.fixture(scope="module")
def trained(tmp_path_factory, fashion):
    """A defended run with its result."""
    return make_tiny_run(tmp_path_factory.mktemp("alone"), fashion)


def truncated(neighbour):
    path = neighbour / "diagnostics.npz"
    path.write_bytes(path.read_bytes()[:200])


def deep(neighbour):
    (neighbour / "result.json").write_text("[" * 100_000)


@pytest.mark.parametrize("damage", [lambda neighbour: None, truncated, deep])
def test_a_result_is_the_same_whatever_lies_beside_its_run(damage, trained, tmp_path):
    shutil.copytree(trained, tmp_path / "runs" / "run")
    shutil.copytree(trained, tmp_path / "runs" / "neighbour")
    twin = json.loads((trained / "result.json").read_text())
    twin["config"]["defence"] = {}
    (tmp_path / "runs" / "neighbour" / "result.json").write_text(json.dumps(twin))
    damage(tmp_path / "runs" / "neighbour")
    assert main(["audit", str(tmp_path / "runs" / "run"), "--jobs", "1"]) == 0
    assert (tmp_path / "runs" / "run" / "result.json").read_bytes() == (trained / "result.json").read_bytes()


def test_the_page_of_both_runs_tells_what_the_twin_does(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    twin = Result.load(trained)
    twin.config["defence"] = {}
    twin.save(tmp_path / "twin")
    assert twin.worst.psnr < 18, "such a short attack breaks nothing"
    for folders, said in (([tmp_path / "run"], False), ([tmp_path / "run", tmp_path / "twin"], True)):
        assert main(["report", *map(str, folders), "--out", str(tmp_path / "page.html")]) == 0
        assert bool(re.search("on the undefended twin the attacks reach", (tmp_path / "page.html").read_text())) == said
