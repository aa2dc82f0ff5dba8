"""Runs that a user points at: found at any depth, read once; a bad one is named and does not stop the others."""

import re

import pytest

from attcem.cli import main
from attcem.runs import read_runs
from attcem.types import Result
from tests.compare.planted import planted


@pytest.fixture
def folder(tmp_path):
    for number, run in enumerate(planted(0.005, seeds=1)):
        run.save(tmp_path / "runs" / f"deep{number % 2}" / str(number))
    return tmp_path / "runs"


@pytest.fixture
def damaged(folder):
    """Two more runs: one is cut short, one has pictures that are none."""
    for name in ("cut", "picture"):
        planted(0.005, seeds=1)[0].save(folder / name)
    (folder / "cut" / "result.json").write_text('{"schema": "attcem-result-1", "seed"')
    (folder / "picture" / "images" / "worst.png").write_bytes(b"%!PS-Adobe")
    return folder


COMMANDS = {
    "report": ["--out", "{out}/page.html"],
    "figures": ["--out", "{out}", "--format", "png"],
    "compare": ["--at-accuracy", "0.65"],
}


def test_runs_are_found_at_any_depth_and_read_once(folder):
    assert len(read_runs([folder, folder / "deep0"]).results) == 7
    assert read_runs([folder]).unread == []


def test_a_folder_without_runs_says_what_to_type(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    for paths, what in (([tmp_path / "empty"], "holds no"), ([folder, tmp_path / "gone"], "not a folder"), ([], "no ")):
        with pytest.raises(ValueError, match=f"{what}.*attcem run"):
            read_runs(paths)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_bad_run_is_named_and_the_others_are_shown(command, damaged, tmp_path, capsys):
    options = [option.format(out=tmp_path) for option in COMMANDS[command]]
    assert main([command, str(damaged), *options]) == 1
    shown = capsys.readouterr()
    assert f"{damaged / 'cut'} cannot be read" in shown.err and "not JSON" in shown.err
    assert f"{damaged / 'picture'} cannot be read" in shown.err and "as a PNG" in shown.err
    assert shown.err.splitlines()[-1] == "attcem: 2 of 9 runs left out, for they cannot be read"
    for run in ("cut", "picture"):
        (damaged / run / "result.json").unlink()
    assert main([command, str(damaged), *options]) == 0
    assert capsys.readouterr().out == shown.out


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_but_bad_runs_is_an_error_that_names_them_all(command, damaged, tmp_path, capsys):
    folder = tmp_path / "new"
    folder.mkdir()
    options = [option.format(out=folder) for option in COMMANDS[command]]
    assert main([command, str(damaged / "cut"), str(damaged / "picture"), *options]) == 1
    shown = capsys.readouterr()
    assert not shown.out and not list(folder.iterdir())
    (line,) = shown.err.splitlines()
    assert all(f"{damaged / name} cannot be read" in line for name in ("cut", "picture"))


def test_a_result_replaces_another_only_when_asked_to(tmp_path):
    first, second = planted(0.005, seeds=2)[:2]
    first.save(tmp_path)
    first.save(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(
        ValueError, match=rf"{re.escape(str(tmp_path))} holds another result: .*another folder.*overwrite=True"
    ):
        second.save(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    second.save(tmp_path, overwrite=True)
    again = Result.load(tmp_path)
    assert again.config["defence"] == second.config["defence"] and again.folder == tmp_path
    assert "folder" not in again.to_json()
