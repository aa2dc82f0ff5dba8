"""A run's folder is held by who works in it, and tidy when that begins."""

import threading

import pytest

from attcem.files import PART
from attcem.workplace import LOCK, working_in


def test_who_holds_a_folder_may_ask_again_and_others_may_not(tmp_path):
    refused = []

    def try_it():
        try:
            working_in(tmp_path / "run").__enter__()
        except ValueError as error:
            refused.append(str(error))

    with working_in(tmp_path / "run"), working_in(tmp_path / "." / "run"):
        other = threading.Thread(target=try_it)
        other.start()
        other.join()
    assert len(refused) == 1 and "wait for it, or stop it and add --resume" in refused[0]
    with working_in(tmp_path / "run"):
        pass


def test_nothing_is_left_of_a_folder_that_nothing_was_written_to(tmp_path):
    with pytest.raises(RuntimeError), working_in(tmp_path / "new"):
        raise RuntimeError
    with working_in(tmp_path / "used"):
        (tmp_path / "used" / "kept").touch()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["kept", "used"]


def test_halves_of_the_dead_are_removed_in_the_whole_folder(tmp_path):
    (tmp_path / "checkpoint").mkdir()
    for half in (tmp_path / f".history.csv.1{PART}", tmp_path / "checkpoint" / f".state.json.1{PART}"):
        half.touch()
    with working_in(tmp_path):
        assert sorted(path.name for path in tmp_path.rglob("*")) == [LOCK, "checkpoint"]
