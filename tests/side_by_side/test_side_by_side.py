"""Several processes share a suite: every attack is done once, as the audit would, and whoever dies is stood in for."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

from attcem import side_by_side
from attcem.assess import share
from attcem.assess.share import Finished, jobs_worth, next_to, to_do
from attcem.attacks import SUITES, Reconstruction, Suite
from attcem.attacks.decoder import Decoder
from attcem.cli import main
from attcem.config import AuditConfig
from attcem.experiment import read_experiment, run
from attcem.locks import held
from attcem.sweep.perform import Job, perform
from attcem.types import Result, View
from tests.conftest import noise_images
from tests.side_by_side import helper
from tests.sweep.made import wait_until
from tests.tiny_run import make_tiny_run


@pytest.fixture(scope="module")
def trained(tmp_path_factory, fashion):
    """A run that awaits its audit."""
    folder = make_tiny_run(tmp_path_factory.mktemp("side"), fashion)
    (folder / "result.json").unlink()
    return folder


@pytest.fixture
def audited(forked, trained, tmp_path, monkeypatch):
    """Audit a copy of the run with some attacks, alone or not."""
    monkeypatch.setattr(side_by_side, "HELPER", [sys.executable, "-m", "tests.side_by_side.helper"])

    def audit(suite, *options, command=("audit",)):
        monkeypatch.setenv("SUITE", suite)
        monkeypatch.setitem(SUITES, "smoke", Suite("smoke", 1, getattr(helper, suite), seen=4_000))
        folder = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        shutil.copytree(trained, folder)
        assert main([*command, str(folder), *options]) == 0
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


def test_run_attacks_as_audit_does(audited, capsys, monkeypatch):
    """The run that was trained goes on, side by side, and finds the same."""
    monkeypatch.setattr(share, "cores", lambda: 2)
    said, found = [], []
    for command in (["audit"], ["run", "--resume"]):
        found.append(audited("FREE", command=command))
        said.append(sorted(re.findall(r"\[[12]\] (\w+): finished after", capsys.readouterr().err)))
    assert said == [sorted(helper.FREE)] * 2
    assert found[0].to_json() == found[1].to_json()
    for name, values in found[0].per_image.items():
        assert np.array_equal(found[1].per_image[name], values, equal_nan=True), name


def test_one_of_many_processes_attacks_by_itself(trained, monkeypatch, tmp_path):
    """A worker of a sweep, and who is left of a team, have one share of the cores."""
    monkeypatch.setattr(share, "cores", lambda: 2)
    monkeypatch.setattr(side_by_side, "sharing", lambda processes: pytest.fail("a helper"))
    monkeypatch.setitem(SUITES, "smoke", Suite("smoke", 1, helper.FREE, seen=4_000))
    shutil.copytree(trained, tmp_path / "run")
    outcome = perform(Job("run", tmp_path / "run", read_experiment(tmp_path / "run")))
    assert outcome.cause is None and outcome.accuracy is not None
    (tmp_path / "run" / "result.json").unlink()
    monkeypatch.setattr("attcem.train.team_size", lambda: 2)
    run(read_experiment(tmp_path / "run"), tmp_path / "run", resume=True, progress=False)
    assert (tmp_path / "run" / "result.json").exists()


@pytest.mark.parametrize("command", [["audit"], ["run", "--resume"]])
def test_ctrl_c_leaves_no_process(command, forked, trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    line = [sys.executable, "-m", "tests.side_by_side.command", *command, str(tmp_path / "run"), "--jobs", "2"]
    with subprocess.Popen(
        line, env=os.environ | {"SUITE": "TALKING"}, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as group:
        while "still here" not in group.stderr.readline():
            assert group.poll() is None
        os.killpg(group.pid, signal.SIGINT)
        said = group.stderr.read()  # ends when the last process has closed it
        assert group.wait(60) == 1 and "kept" in said
    wait_until(lambda: not group_exists(group.pid))  # the system may take a moment to bury the last of them


def group_exists(number: int) -> bool:
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_a_suite_that_keeps_several_busy_is_shared_unless_one_is_asked_for(audited, capsys, monkeypatch):
    monkeypatch.setattr(share, "cores", lambda: 2)
    audited("FREE")
    assert len(re.findall(r"\[[12]\] \w+: finished after", capsys.readouterr().err)) == len(helper.FREE)
    audited("FREE", "--jobs", "1")
    assert not re.findall(r"\[[12]\] ", capsys.readouterr().err)
    audited("ONE_BLIND", "--threat", "black_box")  # the only one that can run has all cores
    assert not re.findall(r"\[[12]\] ", capsys.readouterr().err)


def test_an_attack_whose_process_dies_is_left_to_the_audit(audited, capsys):
    result = audited("FATAL", "--jobs", "2")
    said = capsys.readouterr().err
    assert "ended with code 9: the audit does what it left" in said
    assert "fatal: finished" not in said and set(result.attacks) == set(helper.FATAL)


@pytest.mark.slow
def test_no_helper_outlives_who_started_it(trained, tmp_path, monkeypatch):
    monkeypatch.setenv("SUITE", "TALKING")
    shutil.copytree(trained, tmp_path / "run")
    settings = json.dumps({"suite": "smoke", "images": 40})
    command = [sys.executable, "-m", "tests.side_by_side.helper", str(tmp_path / "run"), settings, "1", "cpu"]
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
        process = real(*args, **options)
        started.append(process)

        def wait():
            del process.wait
            raise KeyboardInterrupt

        if len(started) == 1:
            process.wait = wait
        return process

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        side_by_side.side_by_side(trained, AuditConfig(), 2)
    assert [process.returncode for process in started] == [-9, -9], "ended, and seen to have ended"


@pytest.fixture
def kept(tmp_path):
    """Where processes meet; the view is of no interest here."""
    return Finished(tmp_path, View(public=noise_images(1, (1, 2, 2)), oracle=None, targets=torch.zeros(1, 2)), 0)


def grey(kept, name):
    """As if a process had finished an attack."""
    kept.keep(name, SUITE[name], Reconstruction(torch.zeros(1, 1, 2, 2)))


FIRST = Decoder(8, 1)
SECOND = Decoder(8, 2, start=FIRST)
SUITE = {
    "third": Decoder(8, 3, start=SECOND),
    "second": SECOND,
    "alone": Decoder(8, 5),
    "first": FIRST,
    "small": Decoder(4, 1),
}


def test_what_most_waits_for_comes_first_and_nothing_before_what_it_builds_on(kept):
    assert list(to_do(SUITE, None, kept, 0)) == ["first", "second", "alone", "third", "small"]


@pytest.mark.parametrize("name", SUITES)
def test_every_attack_of_a_suite_is_done_once_after_what_it_builds_on(name, kept):
    suite = SUITES[name].attacks
    order = list(to_do(suite, None, kept, 0))
    assert sorted(order) == sorted(suite)
    for attack in order:
        for other in next_to(suite, attack):
            assert order.index(attack) < order.index(other)


def test_who_waits_for_another_process_goes_on_with_what_that_has_found(kept, monkeypatch):
    recalled, first = [], held(kept.folder / "first.lock")
    monkeypatch.setattr(Decoder, "recall", lambda self, view, found, seed: recalled.append(self))
    assert first.__enter__()

    def wait(seconds):
        grey(kept, "first")
        first.__exit__(None, None, None)

    monkeypatch.setattr(share.time, "sleep", wait)
    done = []
    for name in to_do(SUITE, None, kept, 0):
        grey(kept, name)
        done.append(name)
    assert done == ["alone", "small", "second", "third"] and recalled == [FIRST]


def test_what_another_process_died_in_is_left_with_all_that_waits_for_it(kept, monkeypatch):
    second = held(kept.folder / "second.lock")
    assert second.__enter__()
    monkeypatch.setattr(share.time, "sleep", lambda seconds: second.__exit__(None, None, None))
    assert list(to_do(SUITE, None, kept, 0)) == ["first", "alone", "small"]


def test_as_many_processes_as_a_suite_keeps_busy(monkeypatch):
    monkeypatch.setattr(share, "cores", lambda: 64)
    assert jobs_worth({"first": FIRST, "second": SECOND}) == 1, "one waits for the other"
    assert jobs_worth({f"{blocks}": Decoder(8, 1, cycle=600 + blocks) for blocks in range(5)}) == 4
    assert jobs_worth(SUITES["quick"].attacks) == 1 and jobs_worth(SUITES["standard"].attacks) == 3
    monkeypatch.setattr(share, "cores", lambda: 2)
    assert jobs_worth(SUITES["standard"].attacks) == 2
