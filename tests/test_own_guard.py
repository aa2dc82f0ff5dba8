"""A run with a defence of one's own: recorded, never started from a file, loaded with a guard that is passed."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from torch import nn

from attcem import Defence, Experiment, Noise, load_run, run
from attcem.cli import main
from attcem.config import AuditConfig, DataConfig, ModelConfig, TrainConfig
from attcem.folders import check_folder, settings_text


class Gain(Defence):
    """Scales the latent by a learned factor."""

    def __init__(self, start: float = 0.5) -> None:
        super().__init__()
        self.start = start

    def setup(self, *, latent, classes, sigma):
        self.factor = nn.Parameter(torch.full(tuple(latent), self.start))

    def release(self, z):
        return self.factor * z


def guard(start: float = 0.5) -> Defence:
    return Noise(0.1) + Gain(start)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, fashion) -> Path:
    folder = tmp_path_factory.mktemp("own")
    part = {"x_train": fashion.private[:300].x, "x_test": fashion.test[:40].x}
    labels = {"y_train": fashion.private[:300].y, "y_test": fashion.test[:40].y}
    np.savez(folder / "tiny.npz", **{name: t.numpy().astype(np.uint8) for name, t in (part | labels).items()})
    experiment = Experiment(
        data=DataConfig(name=f"npz:{folder / 'tiny.npz'}"),
        model=ModelConfig(cut=4, bottleneck=4, width=0.1),
        train=TrainConfig(epochs=1, batch=64),
        audit=AuditConfig(suite="smoke", images=20),
    )
    return run(experiment, folder / "run", guard=guard(), progress=False)[1]


def test_the_run_records_where_its_defence_came_from(finished):
    recorded = [{"noise": {"sigma": 0.1}}, {f"{__name__}:Gain": {"start": 0.5}}]
    assert yaml.safe_load((finished / "config.yaml").read_text())["defence"] == recorded
    assert json.loads((finished / "result.json").read_text())["config"]["defence"] == recorded


def test_it_is_loaded_into_a_guard_that_is_passed(finished):
    model, own, data = load_run(finished, guard=guard())
    factor = own.links[-1].factor
    assert factor.shape == model.latent_shape and not torch.equal(factor, torch.full_like(factor, 0.5))
    assert own.release(model.encoder(data.test.pixels()[:2])).isfinite().all()


def test_no_file_starts_it(finished, capsys):
    with pytest.raises(ValueError, match=r"your own class.*load_run\(folder, guard="):
        load_run(finished)
    assert main(["audit", str(finished)]) != 0
    assert "your own class" in capsys.readouterr().err


def test_another_guard_is_refused(finished):
    with pytest.raises(ValueError, match=r"gain was .*0.5.*, now .*0.75"):
        load_run(finished, guard=guard(0.75))


def test_a_run_is_resumed_whichever_way_its_chain_is_written(tmp_path):
    written = Experiment(defence=[{"noise": {"sigma": 0.1}}, "topk"])
    older = yaml.safe_load(settings_text(written)) | {"defence": {"noise": {"sigma": 0.1}, "topk": {}}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(older, sort_keys=False))
    check_folder(tmp_path, written, resume=True)
    with pytest.raises(ValueError, match="other settings"):
        check_folder(tmp_path, Experiment(defence=["topk"]), resume=True)


def test_a_run_is_resumed_though_its_file_leaves_options_to_their_defaults(tmp_path):
    short = Experiment(defence=[{"bound": {"lam": 3}}, {"noise": {}}])
    (tmp_path / "config.yaml").write_text(settings_text(short))
    check_folder(tmp_path, short, resume=True)
    with pytest.raises(ValueError, match="other settings"):
        check_folder(tmp_path, Experiment(defence=[{"bound": {"lam": 4}}, {"noise": {}}]), resume=True)
