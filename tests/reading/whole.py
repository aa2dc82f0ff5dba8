"""A run's folder with one of every file that anybody reads, made in a second."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save
from torch import nn

from attcem.assess.share import Finished
from attcem.attacks import Reconstruction
from attcem.attacks.linear import Linear
from attcem.config import DataConfig, Experiment, ModelConfig, TrainConfig
from attcem.defences import build_defence
from attcem.experiment import load
from attcem.folders import settings_text
from attcem.metrics.evaluator import fresh
from attcem.models import split
from attcem.train.checkpoint import State, save_state
from attcem.train.packing import pack
from attcem.types import Images, Result, View
from tests.report.made import rich_result

PICTURES = Images(torch.arange(4 * 28 * 28, dtype=torch.uint8).reshape(4, 28, 28, 1), torch.tensor([0, 1, 0, 1]))
VIEW = View(PICTURES, None, torch.zeros(2, 3))
CHAIN = [{"noise": {"sigma": 0.1}}, {"bound": {"lam": 1.0, "assign": "slot"}}]


def planned(defence: dict[str, dict[str, float]]) -> Result:
    """A small result with everything in it."""
    return rich_result(pictures=10, size=8, attacked=14, epochs=3, defence=defence)


def make_run(folder: Path) -> None:
    """A folder with one of every file that anybody reads."""
    result = planned({"noise": {"sigma": 0.1}, "bound": {"lam": 2}})
    result.risk = {"percentiles": {"mse": {"p01": 0.001, "p50": 0.004}, "ssim": {"p01": 0.1, "p50": 0.5}}}
    worst = {"mse": 0.01, "ssim": 0.5}
    client = {"client": 0, "images": 9, "classes": {"a": 5, "b": 4}, "accuracy": 0.5, "worst": worst}
    result.clients = [client | {"mean_image_mse": 0.1, "covered": 1.0}]
    result.save(folder)
    (folder / "explain").mkdir()
    Image.new("RGB", (8, 8)).save(folder / "explain" / "1.png", dpi=(144, 144))
    (folder / "explain" / "entries.json").write_text('[{"file": "1.png", "title": "a", "caption": "b"}]')
    (folder / "history.csv").write_text("epoch,loss,val_accuracy\n1,0.5,0.7\n2,0.4,0.8\n")
    make_checkpoint(folder)
    found = Reconstruction(torch.full((2, 1, 4, 4), 0.3), [0.5], ["cut short"], 0.25, {"weights": torch.randn(3, 2)})
    kept_in(folder).keep("linear", Linear(), found)
    judge = fresh(PICTURES[:2], 2).state_dict() | {"accuracy": torch.tensor(0.9, dtype=torch.float64)}
    (folder / "judge.safetensors").write_bytes(save({name: tensor.contiguous() for name, tensor in judge.items()}))


def make_checkpoint(folder: Path) -> None:
    """Settings, data and a network that was trained for a step."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (60, 28, 28, 1), np.uint8), np.arange(60, dtype=np.uint8) % 2
    np.savez(folder / "data.npz", x_train=x, y_train=y, x_test=x[:20], y_test=y[:20])
    experiment = Experiment(
        data=DataConfig(name=f"npz:{folder / 'data.npz'}"),
        model=ModelConfig("resnet20", width=0.125, bottleneck=2),
        defence=CHAIN,
        train=TrainConfig(epochs=3),
        name="mine",
    )
    (folder / "config.yaml").write_text(settings_text(experiment))
    options = {"bottleneck": 2, "width": 0.125}
    torch.manual_seed(0)
    model, guard = split("resnet20", data=load(experiment), **options), build_defence(experiment.defence)
    guard.setup(latent=model.latent_shape, classes=model.classes, sigma=guard.sigma)
    tensors, plain = pack({"model": model, "guard": guard}, {"": stepped(nn.Linear(3, 2))})
    state = State(dataclasses.asdict(experiment.train), model.spec, 0, 1, best_epoch=1, optimiser=plain)
    state.history, state.diagnostics = [{"epoch": 1, "loss": 0.5}], [{"bound/slot_mass": [0.5, 0.5]}]
    save_state(folder / "checkpoint", state, tensors, best=True)


def kept_in(folder: Path) -> Finished:
    """What an audit that was interrupted has left."""
    return Finished(folder / "audit", VIEW, 0)


def stepped(layer: nn.Module) -> torch.optim.Optimizer:
    """An optimiser that has something to remember."""
    optimiser = torch.optim.AdamW(layer.parameters())
    layer(torch.ones(1, 3)).sum().backward()
    optimiser.step()
    return optimiser
