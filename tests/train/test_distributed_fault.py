"""One of two processes is killed: the other ends, too, and a resumed run ends as if nothing had happened."""

import json

import numpy as np
import pytest

from attcem.configfile import parse_experiment
from attcem.defences import build_defence
from attcem.experiment import load, make_model
from attcem.train import fit, read_state, read_tensors
from tests.forked import forking
from tests.train.pair import apart, torchrun

TINY = """\
data: {{name: "npz:{data}"}}
model: {{backbone: vgg11_bn, cut: 4, bottleneck: 4, width: 0.05}}
defence: {{noise: {{sigma: 0.2}}, bound: {{}}}}
train: {{epochs: 3, batch: 31, precision: float64, device: cpu}}
audit: {{suite: smoke, images: 20}}
"""


@pytest.mark.slow
def test_a_killed_process_ends_the_run_which_resumes_to_the_same_weights_and_one_audit(tmp_path, fashion):
    arrays = {"x_train": fashion.private[:250].x, "y_train": fashion.private[:250].y}
    arrays |= {"x_test": fashion.test[:40].x, "y_test": fashion.test[:40].y}
    np.savez(tmp_path / "tiny.npz", **{name: array.numpy().astype(np.uint8) for name, array in arrays.items()})
    file, out, log = tmp_path / "tiny.yaml", tmp_path / "run", tmp_path / "said.txt"
    file.write_text(TINY.format(data=tmp_path / "tiny.npz"))

    assert torchrun("-m", "tests.train.dying", "run", str(file), "--out", str(out), log=log) == 1
    assert "Signal 9" in log.read_text(), log.read_text()
    assert json.loads((out / "checkpoint" / "state.json").read_text())["epoch"] == 1

    with forking():
        assert torchrun("-m", "attcem", "run", str(out), "--resume", log=log) == 0, log.read_text()
    said = log.read_text()
    assert said.count("resuming") == 1 and said.count("epoch 3/3") == 1 and said.count("worst MSE") == 1, said
    assert not list(out.rglob("*.part"))
    assert json.loads((out / "result.json").read_text())["config"]["train"]["batch"] == 31

    experiment = parse_experiment([str(file)])
    data = load(experiment)
    whole = tmp_path / "whole"
    fit(
        make_model(experiment, data),
        build_defence(experiment.defence),
        data,
        experiment.train,
        out=whole,
        progress=False,
    )
    ours, theirs = (
        read_tensors(folder / "checkpoint", read_state(folder / "checkpoint"), "best") for folder in (out, whole)
    )
    assert apart(ours, theirs) == []
