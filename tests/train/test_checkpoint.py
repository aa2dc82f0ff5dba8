"""Nothing is lost: kill -9 and resume, damaged files, foreign runs."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from attcem.defences import Noise, Undefended, create_defence
from attcem.models import build_split, split
from attcem.train import fit, read_state, read_tensors
from tests.conftest import shrink
from tests.probes import Scaled


def start(out: Path) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-m", "tests.train.training", str(out)], stderr=subprocess.PIPE, text=True)


def best_tensors(out: Path) -> dict[str, torch.Tensor]:
    return read_tensors(out / "checkpoint", read_state(out / "checkpoint"), "best")


def kill_after_epochs(out: Path, epochs: int, how: signal.Signals) -> None:
    process, state = start(out), out / "checkpoint" / "state.json"
    deadline = time.time() + 120
    while time.time() < deadline and process.poll() is None:
        if state.exists() and json.loads(state.read_text())["epoch"] >= epochs:
            break
        time.sleep(0.005)
    process.send_signal(how)
    process.wait(60)
    assert not json.loads(state.read_text())["finished"], "it finished before it could be killed"


def test_killed_and_interrupted_runs_resume_to_bit_identical_weights(forked, tmp_path):
    whole = start(tmp_path / "whole")
    assert whole.wait(300) == 0, whole.stderr.read()
    broken = tmp_path / "broken"
    kill_after_epochs(broken, 1, signal.SIGKILL)
    kill_after_epochs(broken, 3, signal.SIGINT)
    rest = start(broken)
    assert rest.wait(300) == 0
    assert "resuming" in rest.stderr.read()
    expected, found = best_tensors(tmp_path / "whole"), best_tensors(broken)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert not list(broken.rglob("*.part")), "a half-written file was left behind"
    assert len(list((broken / "checkpoint").glob("*.safetensors"))) == 1


@pytest.fixture
def trained(small, network, tmp_path):
    fit(network, Noise(0.1), small, epochs=1, out=tmp_path, progress=False)
    return tmp_path


def test_resuming_a_finished_run_only_loads_it(trained, small, network):
    again = build_split(network.spec)
    state = fit(again, Noise(0.1), small, epochs=1, out=trained, resume=True, progress=False)
    assert state.finished and all(
        torch.equal(a, b) for a, b in zip(again.state_dict().values(), network.state_dict().values(), strict=True)
    )


def test_what_a_kill_left_behind_is_gone_after_resuming(small, network, tmp_path, monkeypatch):
    """Killed after the state was switched, before the file was removed that the state had dropped."""
    from attcem.train import checkpoint

    def killed(folder, state):
        if state.dropped:
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "remove_dropped", killed)
    with pytest.raises(KeyboardInterrupt):
        fit(network, Noise(0.1), small, epochs=2, out=tmp_path, progress=False)
    monkeypatch.undo()
    (dropped,) = read_state(tmp_path / "checkpoint").dropped
    assert dropped["name"] == "epoch-0001.safetensors"
    assert len(list((tmp_path / "checkpoint").glob("*.safetensors"))) == 2
    fit(build_split(network.spec), Noise(0.1), small, epochs=2, out=tmp_path, resume=True, progress=False)
    assert len(list((tmp_path / "checkpoint").glob("*.safetensors"))) == 1


def test_files_that_training_did_not_write_stay(small, network, tmp_path):
    own = [tmp_path / "checkpoint" / name for name in ("own.safetensors", "epoch-0099.safetensors")]
    own[0].parent.mkdir()
    for path in own:
        path.write_bytes(b"years of work")
    for _ in range(2):
        fit(network, Noise(0.1), small, epochs=2, out=tmp_path, resume=True, progress=False)
    assert [path.read_bytes() for path in own] == [b"years of work"] * 2


def test_a_state_drops_nothing_outside_its_folder(trained, small, network):
    names = ["../epoch-0001.safetensors", "own.safetensors"]
    for name in names:
        (trained / "checkpoint" / name).write_bytes(b"kept")
    path, digest = trained / "checkpoint" / "state.json", hashlib.sha256(b"kept").hexdigest()
    dropped = [{"name": name, "sha256": digest} for name in names]
    path.write_text(json.dumps(json.loads(path.read_text()) | {"dropped": dropped}))
    fit(network, Noise(0.1), small, epochs=1, out=trained, resume=True, progress=False)
    assert all((trained / "checkpoint" / name).exists() for name in names)


def test_a_file_that_takes_the_name_of_a_dropped_one_stays(small, network, tmp_path, monkeypatch):
    monkeypatch.setattr("attcem.train.loop.Training.finish", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        fit(network, Noise(0.1), small, epochs=2, out=tmp_path, progress=False)
    monkeypatch.undo()
    (dropped,) = read_state(tmp_path / "checkpoint").dropped
    own = tmp_path / "checkpoint" / dropped["name"]
    assert not own.exists()
    own.write_bytes(b"years of work")
    fit(build_split(network.spec), Noise(0.1), small, epochs=2, out=tmp_path, resume=True, progress=False)
    assert own.read_bytes() == b"years of work"


def test_a_checkpoint_that_leads_elsewhere_is_refused(small, network, tmp_path):
    outside, run = tmp_path / "outside", tmp_path / "run"
    outside.mkdir(), run.mkdir()
    (outside / "own.safetensors").write_bytes(b"years of work")
    (run / "checkpoint").symlink_to(outside)
    with pytest.raises(ValueError, match=r"is a link to .*outside: remove it"):
        fit(network, Noise(0.1), small, epochs=1, out=run, progress=False)
    assert [path.name for path in outside.iterdir()] == ["own.safetensors"]


AT_WORK = "import sys; from pathlib import Path; from attcem.workplace import working_in\n"
AT_WORK += "with working_in(Path(sys.argv[1])): print('at work', flush=True); sys.stdin.read()"


def test_who_resumes_what_another_process_works_on_is_told_which(trained, small, network):
    before = {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()}
    first = subprocess.Popen(
        [sys.executable, "-c", AT_WORK, str(trained)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert first.stdout.readline() == "at work\n"
        with pytest.raises(ValueError, match=rf"process {first.pid} on .+wait for it, or stop it and add --resume"):
            fit(network, Noise(0.1), small, epochs=1, out=trained, resume=True, progress=False)
    finally:
        first.kill()
        first.communicate()
    fit(network, Noise(0.1), small, epochs=1, out=trained, resume=True, progress=False)
    assert {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()} == before


def test_a_folder_in_use_is_not_overwritten(trained, small, network):
    with pytest.raises(ValueError, match="already holds a run"):
        fit(network, Noise(0.1), small, epochs=1, out=trained, progress=False)


@pytest.mark.parametrize(("options", "named"), [({"batch": 64}, "batch was 128, now 64"), ({"seed": 3}, "seed")])
def test_resuming_with_other_settings_says_what_differs(trained, small, network, options, named):
    with pytest.raises(ValueError, match=named):
        fit(network, Noise(0.1), small, epochs=1, out=trained, resume=True, progress=False, **options)


def test_damaged_files_are_refused_by_name(trained, small, network):
    (path,) = (trained / "checkpoint").glob("*.safetensors")
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(ValueError, match=r"epoch-0001\.safetensors is damaged"):
        fit(network, Noise(0.1), small, epochs=1, out=trained, resume=True, progress=False)
    path.unlink()
    with pytest.raises(ValueError, match="cannot be read"):
        fit(network, Noise(0.1), small, epochs=1, out=trained, resume=True, progress=False)
    (trained / "checkpoint" / "state.json").write_text('{"epoch": 1')
    with pytest.raises(ValueError, match=r"state\.json is damaged"):
        fit(network, Noise(0.1), small, epochs=1, out=trained, resume=True, progress=False)


def test_a_crash_while_writing_leaves_the_old_state(trained, small, network, monkeypatch):
    from attcem.train import checkpoint

    state = read_state(trained / "checkpoint")
    before = best_tensors(trained)

    def crash(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", crash)
    state.epoch = 2
    with pytest.raises(OSError, match="disk full"):
        checkpoint.save_state(trained / "checkpoint", state, {"model.x": torch.ones(3)}, best=True)
    monkeypatch.undo()
    after = best_tensors(trained)
    assert read_state(trained / "checkpoint").epoch == 1
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_checkpoint_of_another_network_is_refused(trained, small):
    torch.manual_seed(0)
    other = split("vgg11_bn", data=small, cut=4, bottleneck=4, width=0.125)
    with pytest.raises(ValueError, match="another spec"):
        fit(other, Noise(0.1), small, epochs=1, out=trained, resume=True, progress=False)


SURROGATES = {
    "gmm": {},
    "slot": {"form": "mixture", "shut_off": True},
    "bound": {"assign": "slot", "tokens": "spatial", "memory": 0.9},
    "hybrid": {},
    "adversary": {"channels": 4, "blocks": 1},
}
CROSSED = {"gmm": "vector", "bound": {"attention": {"tokens": 3, "width": 8}}, "adversary": {"slot": {"width": 8}}}


@pytest.fixture(scope="module")
def few(small):
    return shrink(small, private=160, validation=50, public=50, test=10)


@pytest.mark.parametrize(
    "name", ["gmm", "adversary", *(pytest.param(name, marks=pytest.mark.slow) for name in ("slot", "bound", "hybrid"))]
)
def test_a_surrogate_goes_on_as_if_never_interrupted(name, few, tmp_path):
    def run(out, *, stop_at=None, resume=False):
        torch.manual_seed(0)
        network = split("vgg11_bn", data=few, cut=4, crossing=CROSSED.get(name, {"map": {"channels": 4}}), width=0.05)
        surrogate = create_defence(name, warmup=1, lam=0.1, **SURROGATES[name])
        watch = surrogate.observe
        steps = 0

        def observe(batch):
            nonlocal steps
            steps += 1
            if steps == stop_at:
                raise KeyboardInterrupt
            watch(batch)

        surrogate.observe = observe
        options = {"epochs": 3, "batch": 32, "out": out, "resume": resume, "progress": False}
        return fit(network, Noise(0.2) + surrogate, few, **options), network

    whole, network = run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "parts", stop_at=8 if name == "gmm" else 13)
    parts, again = run(tmp_path / "parts", resume=True)
    assert parts.surrogate_only == whole.surrogate_only and len(parts.diagnostics) == 3
    for mine, theirs in zip(network.state_dict().values(), again.state_dict().values(), strict=True):
        assert torch.equal(mine, theirs)


def test_optimiser_and_defence_state_come_back(small, network, tmp_path):
    class Stop(Exception):
        pass

    class Stopping(Scaled):
        def observe(self, batch):
            self.seen = getattr(self, "seen", 0) + 1
            if self.seen == 7:
                raise Stop

    with pytest.raises(Stop):
        fit(network, Stopping(), small, epochs=3, out=tmp_path, progress=False)
    names = set(read_tensors(tmp_path / "checkpoint", read_state(tmp_path / "checkpoint"), "last"))
    assert "guard.chained.0.gain" in names and any(name.startswith("optimiser.") for name in names)
    assert Undefended().state_dict() == {}
