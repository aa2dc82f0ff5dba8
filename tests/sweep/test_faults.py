"""Whatever dies, whatever breaks: the results are those of a sweep that nothing happened to."""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from attcem.cli import main
from attcem.locks import only_one
from attcem.sweep.driver import DAMAGED, LOCK
from attcem.sweep.perform import LOG
from tests.sweep.conftest import SEEDS
from tests.sweep.made import content, events, is_alive, kill, processes, start, wait_until

FEW = ["worker", "driver", "worker"]
MANY = ["worker", "worker", "driver", "worker", "worker", "driver", "worker", "worker", "driver", "worker"]


@pytest.mark.parametrize("kills", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "many"])
def test_kills_change_nothing(kills, forked, tiny, undisturbed, tmp_path):
    """Of workers and drivers, each after a seeded number of further epochs, attacks or results; then completed."""
    rng = random.Random(0)
    victims = list(kills)
    for number in range(len(kills)):  # should a sweep end before its last kill, another takes the remaining ones
        out = tmp_path / str(number)
        while victims and not disturb(tiny, out, victims, rng):
            pass
        finishing = start(tiny, *SEEDS, "--jobs", "2", "--out", out, "--resume")
        said, _ = finishing.communicate()
        assert finishing.returncode == 0, said
        assert content(out) == content(undisturbed)
        if not victims:
            return
    raise AssertionError("sweeps end before anything can be killed")


def disturb(tiny: Path, out: Path, victims: list[str], rng: random.Random) -> bool:
    """Start or resume a sweep and kill what is due until its driver is hit; True if it ended by itself."""
    driver = start(tiny, *SEEDS, "--jobs", "2", "--out", out, "--resume")
    while victims:
        due = events(out) + rng.randint(1, 2)
        wait_until(lambda due=due: (events(out) >= due and processes(out)) or driver.poll() is not None)
        if driver.poll() is not None:
            return True
        victim = victims[0]
        working = processes(out)
        if victim == "worker" and not working:
            continue
        victims.pop(0)
        kill(driver.pid if victim == "driver" else rng.choice(working))
        if victim == "driver":
            driver.communicate()
            wait_until(lambda working=working: not any(map(is_alive, working)))  # none outlives it
            return False
    driver.communicate()
    return True


def test_an_interrupt_ends_everything_and_says_how_to_go_on(tiny, tmp_path):
    out = tmp_path / "out"
    driver = start(tiny, "--seeds", "0", "--jobs", "1", "--out", out)
    (worker,) = wait_until(lambda: processes(out))
    driver.send_signal(signal.SIGINT)
    said, _ = driver.communicate()
    assert driver.returncode == 1 and "--resume" in said
    wait_until(lambda: not is_alive(worker))


def test_finished_runs_are_not_repeated_and_a_second_sweep_needs_resume(tiny, undisturbed, capsys):
    before = {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*") if path.name != LOCK}
    assert main(["sweep", str(tiny), *SEEDS, "--out", str(undisturbed)]) == 1
    assert "add --resume" in capsys.readouterr().err
    assert main(["sweep", str(tiny), *SEEDS, "--out", str(undisturbed), "--resume"]) == 0
    assert "4 finished before" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*") if path.name != LOCK} == before


def test_a_result_that_is_not_whole_is_made_again_from_its_checkpoint(forked, tiny, undisturbed, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(undisturbed, out)
    result = sorted(out.glob("*/result.json"))[0]
    result.write_bytes(result.read_bytes()[:1000])
    (result.parent / ".result.json.1.attcem.part").write_bytes(b"{")
    assert main(["sweep", str(tiny), *SEEDS, "--out", str(out), "--resume"]) == 0
    aside = result.with_name(DAMAGED)
    assert len(aside.read_bytes()) == 1000, "somebody's file is put aside, not deleted"
    aside.unlink()
    assert content(out) == content(undisturbed)
    assert "epoch" not in (result.parent / LOG).read_text().rpartition("process ")[2]


def test_a_damaged_checkpoint_is_one_failed_run_with_its_cause(forked, tiny, undisturbed, tmp_path, capsys):
    out = tmp_path / "out"
    shutil.copytree(undisturbed, out)
    result = sorted(out.glob("*/result.json"))[0]
    result.unlink()
    (weights,) = result.parent.glob("checkpoint/*.safetensors")
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    assert main(["sweep", str(tiny), *SEEDS, "--out", str(out), "--resume"]) == 1
    said = capsys.readouterr().err
    assert "its checksum differs" in said and "1 of 4 runs failed" in said
    assert "Traceback" in (result.parent / LOG).read_text() and not result.exists()


def test_a_full_disk_leaves_nothing_half_written_and_the_sweep_completes_when_there_is_room(
    forked, tiny, undisturbed, tmp_path, capsys
):
    out = tmp_path / "out"
    with files_of_at_most(8_000):
        assert main(["sweep", str(tiny), *SEEDS, "--jobs", "2", "--out", str(out)]) == 1
    said = capsys.readouterr().err
    assert said.count("File too large") >= 4 and "4 of 4 runs failed" in said
    assert not list(out.rglob("*.part")) and not list(out.rglob("*.safetensors"))
    assert main(["sweep", str(tiny), *SEEDS, "--jobs", "2", "--out", str(out), "--resume"]) == 0
    assert content(out) == content(undisturbed)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A disk on which, for this process and those that it starts, every longer write fails in the kernel."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


def test_a_run_that_diverges_fails_alone(forked, tiny, tmp_path, capsys):
    grid = tmp_path / "grid.yaml"
    grid.write_text(tiny.read_text().partition("runs:")[0] + "runs: [{}, {train.lr: 1.0e+30}]")
    assert main(["sweep", str(grid), "--jobs", "2", "--out", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert "not finite" in said and "1 of 2 runs failed" in said
    assert len(list(tmp_path.glob("out/*/result.json"))) == 1


def test_two_sweeps_on_one_folder(tiny, tmp_path, capsys):
    with only_one(tmp_path / LOCK, "a sweep is at work", "wait"):
        assert main(["sweep", str(tiny), "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert f"process {os.getpid()} on" in said and "--out" in said
    assert [path.name for path in tmp_path.iterdir()] == [LOCK]


@pytest.mark.parametrize("folder", ["file", "file/deeper"])
def test_a_folder_that_cannot_be_written_to(tiny, folder, tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    assert main(["sweep", str(tiny), "--out", str(tmp_path / folder)]) == 1
    assert f"cannot write to {tmp_path / folder}" in capsys.readouterr().err


MODES_COUNT = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
"""Before a command of root's, which modes would not stop otherwise."""


TWICE = "import sys; from attcem.cli import main; "
TWICE += "print([main(['sweep', sys.argv[1], '--out', out]) for out in sys.argv[2:]])"


@pytest.mark.skipif(bool(MODES_COUNT) and not shutil.which("setpriv"), reason="modes do not stop root, and no setpriv")
def test_a_read_only_folder(tiny, tmp_path):
    tmp_path.chmod(0o500)
    folders = [str(tmp_path), str(tmp_path / "out")]
    command = [*MODES_COUNT, sys.executable, "-c", TWICE, str(tiny), *folders]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.stdout == "[1, 1]\n" and "Traceback" not in ended.stderr
    for folder in folders:
        assert f"cannot write to {folder} (Permission denied): choose another --out" in ended.stderr
    assert not list(tmp_path.iterdir())
