"""Tuning looks at validation images only, shares its study, and loses no trial."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from attcem.cli import main
from tests.sweep.made import kill, wait_until, write_tiny

optuna = pytest.importorskip("optuna", reason="optuna is not installed: pip install 'attcem[tune]'")
OVER = ["--log-range", "defence.noise.sigma", "0.01", "1", "--choice", "model.activation", "tanh", "sigmoid"]


@pytest.fixture
def base(tmp_path) -> Path:
    """One experiment of seconds, from the sweep's own."""
    settings = yaml.safe_load(write_tiny(tmp_path).read_text())["base"]
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(settings))
    return tmp_path / "base.yaml"


def study(out: Path):
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    return optuna.load_study(study_name=None, storage=JournalStorage(JournalFileBackend(str(out / "study.journal"))))


def test_no_test_image_has_any_say(base, capsys):
    arguments = ["tune", str(base), *OVER, "--trials", "1", "--out"]
    assert main([*arguments, str(base.parent / "one")]) == 0
    printed = capsys.readouterr().out
    with np.load(base.parent / "tiny.npz") as arrays:
        changed = dict(arrays) | {"x_test": 255 - arrays["x_test"], "y_test": 3 - arrays["y_test"]}
    np.savez(base.parent / "tiny.npz", **changed)
    assert main([*arguments, str(base.parent / "other")]) == 0
    one, other = study(base.parent / "one"), study(base.parent / "other")
    assert [trial.params for trial in one.trials] == [trial.params for trial in other.trials]
    assert [trial.values for trial in one.trials] == [trial.values for trial in other.trials]
    assert len(one.trials) == 1 and not list(base.parent.rglob("result.json"))
    assert "validation accuracy" in printed and f"attcem run {base} --" in printed


@pytest.mark.slow
def test_a_trial_whose_process_was_killed_is_taken_up_by_the_next(base):
    out = base.parent / "out"
    arguments = ["tune", str(base), *OVER, "--train.epochs", "3", "--trials", "1", "--out"]
    alike = os.environ | {"OMP_NUM_THREADS": "1"}  # another number of threads rounds otherwise
    command = [sys.executable, "-m", "attcem", *arguments, out]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=alike)
    wait_until(lambda: list(out.glob("*/checkpoint/state.json")))
    kill(process.pid)
    assert process.wait() == -signal.SIGKILL
    assert main([*arguments, str(out)]) == 0
    assert main([*arguments, str(base.parent / "undisturbed")]) == 0
    done = [trial for trial in study(out).trials if trial.values]
    (expected,) = study(base.parent / "undisturbed").trials
    assert [(trial.params, trial.values) for trial in done] == [(expected.params, expected.values)]
    before = len(study(out).trials)
    assert main([*arguments, str(out)]) == 0
    assert len(study(out).trials) == before


def test_another_search_in_the_same_folder_is_refused(base, capsys):
    out = base.parent / "out"
    from attcem.tune import open_study, read_search

    open_study(read_search([str(base)], [], [["defence.noise.sigma", "0.1", "1"]], []), out, seed=0)
    assert main(["tune", str(base), *OVER, "--out", str(out)]) == 1
    assert "holds another search" in capsys.readouterr().err


def test_whole_numbers_where_a_setting_takes_no_others(base):
    from attcem.tune import read_search

    search = read_search([str(base)], [["train.epochs", "1", "9"], ["defence.noise.sigma", "0", "2"]], [], [])
    kinds = {key: type(values).__name__ for key, values in search.space.items()}
    assert kinds == {"train.epochs": "IntDistribution", "defence.noise.sigma": "FloatDistribution"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "nothing to search"),
        (["--range", "train.epohs", "1", "2"], "did you mean '--train.epochs'"),
        (["--range", "train.epochs", "0", "2"], "at least 1"),
        (["--range", "train.lr", "2", "1"], "must rise"),
        (["--log-range", "defence.noise.sigma", "0", "1"], "above zero"),
        (["--range", "model.activation", "tanh", "relu"], "use --choice"),
        (["--choice", "model.activation", "tan"], "did you mean 'tanh'"),
        (["--choice", "model.activation"], "needs values"),
    ],
)
def test_a_mistake_is_found_before_any_trial(base, arguments, named, capsys):
    shutil.rmtree(base.parent / "out", ignore_errors=True)
    assert main(["tune", str(base), *arguments, "--out", str(base.parent / "out")]) == 2
    assert named in capsys.readouterr().err and not (base.parent / "out").exists()
