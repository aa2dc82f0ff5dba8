"""Several processes share a suite: every attack is done once, as the audit would, and whoever dies is stood in for."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from attcem import side_by_side
from attcem.assess.share import groups, taken
from attcem.attacks import SUITES
from attcem.cli import main
from attcem.config import AuditConfig
from attcem.types import Result
from tests.side_by_side import helper


@pytest.fixture(scope="module")
def trained(tmp_path_factory, fashion):
    """A run that awaits its audit."""
    folder = tmp_path_factory.mktemp("side")
    train, test = fashion.private[:400], fashion.test[:60]
    np.savez(folder / "tiny.npz", x_train=train.x, y_train=train.y, x_test=test.x, y_test=test.y)
    settings = {
        "data": {"name": f"npz:{folder / 'tiny.npz'}"},
        "model": {"backbone": "vgg11_bn", "cut": 4, "bottleneck": 4, "width": 0.1},
        "defence": {"noise": {"sigma": 0.2}},
        "train": {"epochs": 1, "batch": 32},
        "audit": {"suite": "smoke", "images": 40},
    }
    (folder / "tiny.yaml").write_text(json.dumps(settings))
    assert main(["run", str(folder / "tiny.yaml"), "--out", str(folder / "run")]) == 0
    (folder / "run" / "result.json").unlink()
    return folder / "run"


@pytest.fixture
def audited(trained, tmp_path, monkeypatch):
    """Audit a copy of the run with some attacks, alone or not."""
    monkeypatch.setattr(side_by_side, "HELPER", [sys.executable, "-m", "tests.side_by_side.helper"])

    def audit(suite, *options):
        monkeypatch.setenv("SUITE", suite)
        monkeypatch.setitem(SUITES, "smoke", getattr(helper, suite))
        folder = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        shutil.copytree(trained, folder)
        assert main(["audit", str(folder), *options]) == 0
        assert not (folder / "audit").exists()
        return Result.load(folder)

    return audit


def test_two_processes_find_what_one_finds_and_do_every_attack_once(audited, capsys):
    alone = audited("BRIEF")
    capsys.readouterr()
    shared = audited("BRIEF", "--jobs", "2")
    said = capsys.readouterr().err
    assert sorted(re.findall(r"\[[12]\] (\w+): finished after", said)) == sorted(helper.BRIEF)
    assert "4 of 4 done, about 0 min left" in said
    for name, values in alone.per_image.items():
        assert np.array_equal(shared.per_image[name], values, equal_nan=True), name
    assert shared.to_json() == alone.to_json()


def test_an_attack_whose_process_dies_is_left_to_the_audit(audited, capsys):
    result = audited("FATAL", "--jobs", "2")
    said = capsys.readouterr().err
    assert "ended with code 9: the audit does what it left" in said
    assert "fatal: finished" not in said and set(result.attacks) == set(helper.FATAL)


def test_no_helper_outlives_who_started_it(trained, tmp_path, monkeypatch):
    monkeypatch.setenv("SUITE", "TALKING")
    shutil.copytree(trained, tmp_path / "run")
    settings = json.dumps({"suite": "smoke", "images": 40})
    command = [sys.executable, "-m", "tests.side_by_side.helper", str(tmp_path / "run"), settings, "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as orphan:
        while "still here" not in orphan.stderr.readline():
            assert orphan.poll() is None
        orphan.stderr.close()
        assert orphan.wait(60) != 0


def test_an_error_ends_the_helpers(trained, monkeypatch):
    started = []
    monkeypatch.setattr(side_by_side, "HELPER", [sys.executable, "-c", "import time; time.sleep(600)"])
    real = subprocess.Popen

    def interrupted(*args, **options):
        started.append(real(*args, **options))
        started[-1].wait = lambda: (_ for _ in ()).throw(KeyboardInterrupt)
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        side_by_side.side_by_side(trained, AuditConfig(), 2)
    assert [real.wait(process, 60) for process in started] == [-9, -9]


@pytest.mark.parametrize("name", SUITES)
def test_attacks_that_build_on_a_decoder_are_done_where_it_is_trained(name):
    suite, found = SUITES[name], groups(SUITES[name])
    assert sorted(attack for group in found for attack in group) == sorted(suite)
    for group in found:
        assert len({attack.builds_on for attack in group.values()}) == 1
    assert len({next(iter(group.values())).builds_on for group in found}) == len(found)
    costs = [sum(attack.effort for attack in group.values()) for group in found]
    assert costs == sorted(costs, reverse=True)


def test_the_standard_suite_has_one_decoder_for_all_that_build_on_one():
    (group,) = (group for group in groups(SUITES["standard"]) if "optimise_lbfgs" in group)
    grown = {"decoder_res8", "decoder_large", "decoder_ssim", "decoder_gan"}
    assert set(group) == {"decoder_medium", "optimise_adam", "optimise_lbfgs", "generative"} | grown


def test_what_one_process_holds_no_other_takes(tmp_path):
    a, b = tmp_path / "a.lock", tmp_path / "b.lock"
    with taken(a) as first, taken(a) as second, taken(b) as other:
        assert (first, second, other) == (True, False, True)
    with taken(a) as again:
        assert again
