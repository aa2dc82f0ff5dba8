"""One word for where to compute, the same for every command, and no part of what a run is."""

import argparse
import sys

import pytest

from attcem import side_by_side
from attcem.cli import build_parser, main
from attcem.config import AuditConfig, Experiment
from attcem.device import find_device
from attcem.experiment import run, run_folder
from attcem.folders import check_folder, settings_text
from attcem.options import DEVICE
from attcem.sweep.grid import read_sweep
from attcem.tune import read_search

COMPUTING = ("demo", "run", "sweep", "tune", "cut", "audit", "explain")


@pytest.fixture
def begun(tmp_path):
    """The folder of a run that was begun on another machine, with more GPUs than there are."""
    (tmp_path / "config.yaml").write_text(settings_text(Experiment().on("cuda:77")))
    return tmp_path


@pytest.mark.parametrize("name", COMPUTING)
def test_every_command_that_computes_takes_the_same_option(name):
    (commands,) = (action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction))
    (option,) = (action for action in commands.choices[name]._actions if "--device" in action.option_strings)
    assert option.help == DEVICE and option.default in (None, "auto")


def test_the_help_of_run_also_lists_every_setting(capsys):
    with pytest.raises(SystemExit) as end:
        main(["run", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert end.value.code == 0 and f"--device DEVICE {DEVICE}" in said and "--train.device DEVICE" in said


@pytest.mark.parametrize("device", ["cuda:77", "nowhere", "meta"])
def test_a_place_that_cannot_be_used_is_refused_in_one_line(device):
    with pytest.raises(ValueError, match=r"cannot be used here \(.*\): try auto or cpu"):
        find_device(device)


def test_a_place_without_double_precision_is_refused(monkeypatch):
    def zeros(*_, **__):
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.")

    monkeypatch.setattr("torch.zeros", zeros)
    with pytest.raises(ValueError, match=r"doesn't support float64.*try auto or cpu"):
        find_device("mps")


def test_run_is_told_by_option_or_setting(monkeypatch):
    asked = []

    def note(experiment, *_, **__):
        asked.append(experiment.train.device)
        raise ValueError("that was all")

    monkeypatch.setattr("attcem.experiment.run", note)
    for arguments in (
        [],
        ["--train.device", "cpu"],
        ["--device", "cuda:1"],
        ["--train.device", "cpu", "--device", "cuda"],
    ):
        main(["run", *arguments])
    assert asked == ["auto", "cpu", "cuda:1", "cuda"]


@pytest.mark.parametrize("command", ["audit", "explain"])
def test_a_run_from_a_larger_machine_is_opened_on_this_one(command, begun, capsys):
    assert main([command, str(begun)]) == 1
    assert "no checkpoint" in capsys.readouterr().err, "it gets as far as there is something to open"
    assert main([command, str(begun), "--device", "cuda:77"]) == 1
    assert "device 'cuda:77' cannot be used here" in capsys.readouterr().err


def test_helpers_are_sent_to_the_same_place(begun, monkeypatch, capsys):
    monkeypatch.setattr(
        side_by_side, "HELPER", [sys.executable, "-c", "import sys; print('on', sys.argv[-1], file=sys.stderr)"]
    )
    side_by_side.side_by_side(begun, AuditConfig(), 2, device="cuda:1")
    assert "[1] on cuda:1" in capsys.readouterr().err


def test_a_run_is_the_same_on_every_device(begun):
    assert run_folder(Experiment().on("cuda")) == run_folder(Experiment())
    check_folder(begun, Experiment().on("cpu"), resume=True)
    with pytest.raises(ValueError, match="other settings"):
        check_folder(begun, Experiment(seed=1), resume=True)


def test_a_wrong_device_leaves_no_run_behind(tmp_path):
    with pytest.raises(ValueError, match="cuda:77"):
        run(Experiment().on("cuda:77"), tmp_path / "run", progress=False)
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_a_sweep_and_a_search_send_their_runs_there(tmp_path):
    (tmp_path / "grid.yaml").write_text("grid: {seed: [0, 1]}\n")
    assert {run.experiment.train.device for run in read_sweep(tmp_path / "grid.yaml", {}, device="cuda")} == {"cuda"}
    here, there = (read_search([], [("train.crop", "1", "3")], [], [], device) for device in (None, "cuda"))
    assert there.experiment({"train.crop": 2}).train.device == "cuda" and here.base == there.base
