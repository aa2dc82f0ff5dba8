"""A run takes a folder that is free or its own, and one that never got going gives it back."""

import pkgutil
import subprocess
import sys

import pytest
import yaml

import attcem.experiment
from attcem.cli import main
from attcem.train.loop import Training
from attcem.workplace import working_in
from tests.sweep.made import write_tiny

AT_WORK = "import sys; from pathlib import Path; from attcem.workplace import working_in\n"
AT_WORK += "with working_in(Path(sys.argv[1])): print('at work', flush=True); sys.stdin.read()"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The file of a run of seconds."""
    path = write_tiny(tmp_path_factory.mktemp("tiny"))
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text())["base"]))
    return path


@pytest.fixture(scope="module")
def finished(tiny):
    assert main(["run", str(tiny), "--out", str(tiny.parent / "run")]) == 0
    return tiny.parent / "run"


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def failing_in(epoch, error):
    """A training that goes wrong in one epoch."""
    train = Training.train

    def fail(self, number):
        if number + 1 == epoch:
            raise error
        return train(self, number)

    return fail


@pytest.mark.parametrize("option", ["train.start_from", "defence.transfer.start_from"])
def test_a_wrong_run_to_start_from_leaves_no_folder(option, tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("attcem.experiment.load", lambda experiment: pytest.fail("data were loaded for nothing"))
    assert main(["run", str(tiny), f"--{option}", str(tmp_path / "none"), "--out", str(tmp_path / "r")]) == 1
    assert "no checkpoint in" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_run_to_start_from_that_does_not_fit_leaves_no_folder(tiny, finished, tmp_path, capsys):
    arguments = ["run", str(tiny), "--train.start_from", str(finished), "--out", str(tmp_path / "r")]
    assert main([*arguments, "--model.width", "0.25"]) == 1
    assert "does not fit" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert main(arguments) == 0


def test_a_failure_before_the_first_checkpoint_leaves_the_folder_as_it_was(tiny, tmp_path, monkeypatch, capsys):
    (tmp_path / "checkpoint").mkdir()
    for own in (tmp_path / "notes.txt", tmp_path / "checkpoint" / "own.safetensors"):
        own.write_text("years of work")
    before = contents(tmp_path)
    for named in ("train", "review"):
        monkeypatch.setattr(Training, named, lambda *_: (_ for _ in ()).throw(ValueError("lower train.lr")))
        assert main(["run", str(tiny), "--out", str(tmp_path), "--train.lr", "1e9"]) == 1
        monkeypatch.undo()
        assert "lower train.lr" in capsys.readouterr().err and contents(tmp_path) == before
    assert main(["run", str(tiny), "--out", str(tmp_path)]) == 0
    assert contents(tmp_path).items() >= before.items()


def test_a_failure_after_the_first_checkpoint_loses_nothing(tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Training, "train", failing_in(2, ValueError("the power went")))
    assert main(["run", str(tiny), "--out", str(tmp_path)]) == 1
    monkeypatch.undo()
    assert main(["run", str(tiny), "--out", str(tmp_path)]) == 1
    assert "already holds a run: add --resume" in capsys.readouterr().err
    monkeypatch.setattr(Training, "train", failing_in(1, ValueError("begun anew")))
    assert main(["run", str(tiny), "--out", str(tmp_path), "--resume"]) == 0


def test_the_same_command_goes_on_where_nothing_was_finished(tiny, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Training, "train", failing_in(1, KeyboardInterrupt()))
    assert main(["run", str(tiny), "--out", str(tmp_path / "r")]) == 1
    monkeypatch.undo()
    assert main(["run", str(tiny), "--out", str(tmp_path / "r"), "--seed", "1"]) == 1
    assert "holds a run of other settings" in capsys.readouterr().err
    assert main(["run", str(tiny), "--out", str(tmp_path / "r")]) == 0


def test_settings_are_compared_not_their_words(finished, tiny, capsys):
    """In another order, without defaults, with remarks."""
    path = finished / "config.yaml"
    written = path.read_text()
    settings = yaml.safe_load(written)
    settings["train"] = {"batch": 32, "epochs": 2}
    path.write_text("# my notes\n" + yaml.safe_dump(settings, sort_keys=True))
    mine = path.read_text()
    try:
        assert main(["run", str(tiny), "--out", str(finished), "--resume"]) == 0
        assert path.read_text() == mine
        assert main(["run", str(tiny), "--out", str(finished), "--resume", "--train.batch", "16"]) == 1
        assert "other settings" in capsys.readouterr().err
    finally:
        path.write_text(written)


@pytest.mark.parametrize("name", ["history.csv", "images/cat.png", "result.json", "checkpoint/state.json"])
def test_what_no_run_wrote_is_not_overwritten(name, tiny, tmp_path, capsys):
    own = tmp_path / name
    own.parent.mkdir(exist_ok=True)
    own.write_text("mine")
    assert main(["run", str(tiny), "--out", str(tmp_path), "--resume"]) == 1
    assert f"holds no run, but a {name.removesuffix('/cat.png')}" in capsys.readouterr().err
    assert contents(tmp_path) == {own.relative_to(tmp_path): b"mine"}


def test_nobody_audits_what_another_process_works_on(finished, capsys):
    before = contents(finished)
    other = subprocess.Popen(
        [sys.executable, "-c", AT_WORK, str(finished)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout.readline() == "at work\n"
        assert main(["audit", str(finished), "--seed", "5"]) == 1
        assert f"process {other.pid} on" in capsys.readouterr().err
    finally:
        other.kill()
        other.communicate()
    assert main(["audit", str(finished), "--jobs", "1"]) == 0
    assert contents(finished).keys() == before.keys()


@pytest.mark.parametrize("command", ["run", "audit"])
def test_a_run_is_held_while_it_is_attacked(command, tiny, finished, tmp_path, monkeypatch, capsys):
    def audit(*arguments, **options):
        held = subprocess.run([sys.executable, "-c", AT_WORK, str(folder)], input="", capture_output=True, text=True)
        raise ValueError(held.stderr.splitlines()[-1])

    folder = finished if command == "audit" else tmp_path
    monkeypatch.setattr(attcem.experiment, "audit", audit)
    arguments = [str(folder), "--jobs", "1"] if command == "audit" else [str(tiny), "--out", str(folder)]
    assert main([command, *arguments]) == 1
    assert "a process is at work in" in capsys.readouterr().err
    with working_in(folder):
        pass


def counted(monkeypatch, where):
    """How often a function is called."""
    calls, function = [], pkgutil.resolve_name(where)
    monkeypatch.setattr(where.replace(":", "."), lambda *given: calls.append(given) or function(*given))
    return calls


def test_a_run_reads_its_settings_once_and_builds_its_defence_once(tiny, tmp_path, monkeypatch):
    read = counted(monkeypatch, "attcem.reading.settings:read_content")
    built = counted(monkeypatch, "attcem.parts:build_defence")
    monkeypatch.setattr("attcem.experiment.load", lambda experiment: (_ for _ in ()).throw(ValueError("that is all")))
    assert main(["run", str(tiny), "--out", str(tmp_path / "r")]) == 1
    assert len(read) == len(built) == 1


def test_an_audit_reads_the_settings_once(finished, monkeypatch):
    read = counted(monkeypatch, "attcem.reading.settings:read_content")
    monkeypatch.setattr(
        "attcem.experiment.audit_run", lambda *_, **__: (_ for _ in ()).throw(ValueError("that is all"))
    )
    assert main(["audit", str(finished)]) == 1
    assert len(read) == 1
