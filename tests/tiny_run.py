"""A run of seconds in a folder of its own: training, audit and result."""

import json
from pathlib import Path

import numpy as np

from attcem.cli import main
from attcem.data import Data


def make_tiny_run(folder: Path, data: Data) -> Path:
    """Train and audit a small network behind noise, on arrays of one's own."""
    train, test = data.private[:400], data.test[:60]
    np.savez(folder / "tiny.npz", x_train=train.x, y_train=train.y, x_test=test.x, y_test=test.y)
    settings = {
        "data": {"name": f"npz:{folder / 'tiny.npz'}"},
        "model": {"backbone": "vgg11_bn", "cut": 4, "bottleneck": 4, "width": 0.1},
        "defence": {"noise": {"sigma": 0.2}},
        "train": {"epochs": 1, "batch": 32},
        "audit": {"suite": "smoke", "images": 40},
    }
    (folder / "tiny.yaml").write_text(json.dumps(settings))
    assert main(["run", str(folder / "tiny.yaml"), "--out", str(folder / "run")]) == 0
    return folder / "run"
