"""What one process holds, no other takes; what a process holds is free when it ends."""

import errno
import fcntl
import os
import subprocess
import sys

import pytest

from attcem.locks import held, only_one

HOLD = "import sys; from pathlib import Path; from attcem.locks import only_one\n"
HOLD += "with only_one(Path(sys.argv[1]), 'work goes on', 'wait'): print('held', flush=True); sys.stdin.read()"


def test_what_one_holds_no_other_takes(tmp_path):
    a, b = tmp_path / "a.lock", tmp_path / "b.lock"
    with held(a) as first, held(a) as second, held(b) as other:
        assert first and not second and other
    with held(a) as again:
        assert again


def test_a_file_that_its_holder_removes_is_held_anew(tmp_path, monkeypatch):
    """Who opened it before it was removed must not believe that it holds what others open afterwards."""
    path, real = tmp_path / "lock", fcntl.flock
    path.write_text("of a holder that ends now")

    def remove_first(file, how):
        monkeypatch.setattr(fcntl, "flock", real)
        path.unlink()
        real(file, how)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with held(path) as mine, held(path) as other:
        assert mine and mine.read() == "" and not other


def test_the_error_names_the_process_and_a_kill_frees_it(tmp_path):
    path = tmp_path / "deep" / "lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ValueError, match=rf"work goes on in .*deep \(process {holder.pid} on .+\): wait"):
            only_one(path, "work goes on", "wait").__enter__()
    finally:
        holder.kill()
        holder.communicate()
    with only_one(path, "work goes on", "wait"):
        assert path.read_text().startswith(f"process {os.getpid()} on ")


def test_a_lock_is_never_taken_through_a_link(tmp_path):
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(ValueError, match="cannot write to"):
        only_one(tmp_path / "lock", "work goes on", "wait").__enter__()
    assert (tmp_path / "precious").read_text() == "kept"


def test_a_file_system_without_locks_keeps_nobody_out(tmp_path, monkeypatch):
    def unknown(file, how):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", unknown)
    with held(tmp_path / "lock") as first, held(tmp_path / "lock") as second:
        assert first and second
