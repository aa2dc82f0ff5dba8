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


@pytest.mark.parametrize("end", [PART, ".part"])
def test_halves_of_the_dead_are_removed_in_the_whole_folder(end, tmp_path):
    """Those of older versions, too, which had a plainer end."""
    (tmp_path / "checkpoint").mkdir()
    for name in (".history.csv.12", "checkpoint/.state.json.1", "checkpoint/.epoch-0002.safetensors.345"):
        (tmp_path / f"{name}{end}").touch()
    for own in (".film.mkv.77.part", "history.csv.12.part", ".notes.json.part"):
        (tmp_path / own).touch()
    with working_in(tmp_path):
        left = {path.name for path in tmp_path.rglob("*")}
    assert left == {LOCK, "checkpoint", ".film.mkv.77.part", "history.csv.12.part", ".notes.json.part"}
