"""Files are whole or not there, and nothing half-written outlives the next write beside it."""

import errno
import fcntl
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from attcem.files import PART, replacing, write_atomically

WRITE = """
import sys
from pathlib import Path
from attcem.files import replacing
with replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    print("writing", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def writer(tmp_path):
    """A process in the middle of writing `slow`."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITE, str(tmp_path / "slow")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "writing\n"
    yield process
    process.kill()
    process.communicate()


def test_a_killed_process_s_half_is_removed_at_the_next_write_beside_it(tmp_path, writer):
    writer.kill()
    writer.wait()
    assert [path.name for path in tmp_path.iterdir()] == [f".slow.{writer.pid}{PART}"]
    write_atomically(tmp_path / "other", b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_a_living_process_s_half_is_left_alone(tmp_path, writer):
    write_atomically(tmp_path / "other", b"whole")
    write_atomically(tmp_path / "slow", b"from somebody else")
    writer.communicate("")
    assert writer.returncode == 0 and (tmp_path / "slow").read_bytes() == b"half"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "slow"]


def test_a_foreign_file_beside_it_is_left_alone(tmp_path):
    names = [".film.mkv.part", ".film.mkv.77.part", "own.attcem.part"]
    for name in names:
        (tmp_path / name).write_text("somebody's download")
    os.mkfifo(tmp_path / f".pipe{PART}")
    write_atomically(tmp_path / "new", b"whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, "new", f".pipe{PART}"])


def test_where_there_are_no_locks_nothing_is_removed(tmp_path, monkeypatch):
    def unknown(file, how):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", unknown)
    (tmp_path / f".slow.1{PART}").write_text("perhaps of a living process on another machine")
    write_atomically(tmp_path / "new", b"whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f".slow.1{PART}", "new"]


def test_threads_that_write_one_file_take_turns(tmp_path):
    contents = [bytes([number]) * 1000 for number in range(100)]
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(partial(write_atomically, tmp_path / "x"), contents)) == {tmp_path / "x"}
    assert (tmp_path / "x").read_bytes() in contents and len(list(tmp_path.iterdir())) == 1


def test_what_fails_leaves_the_old_file(tmp_path):
    write_atomically(tmp_path / "x", b"old")
    with pytest.raises(RuntimeError), replacing(tmp_path / "x") as file:
        file.write(b"new")
        raise RuntimeError
    assert (tmp_path / "x").read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1
