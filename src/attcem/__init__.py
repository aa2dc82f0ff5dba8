"""attcem: train, attack and ship split neural networks whose cloud half cannot reconstruct what the device saw."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if os.name != "posix":
    raise ImportError("attcem needs Linux or macOS (fcntl, resource): on Windows, install it inside WSL")

if TYPE_CHECKING:
    from attcem.assess import audit
    from attcem.attacks import ATTACKS, Attack, Reconstruction
    from attcem.config import Experiment
    from attcem.data import DATASETS, load_data, make_data
    from attcem.defences import DEFENCES, Chain, Defence, Guard, Noise, create_defence
    from attcem.experiment import load_run, run
    from attcem.models import BACKBONES, Split
    from attcem.models.split import split
    from attcem.report import write_report
    from attcem.ship import Device, export, read_artifact
    from attcem.train import evaluate, fit
    from attcem.types import Batch, Images, Result, View

__version__ = "0.1.0"

_HOMES = {
    "attcem.assess": ["audit"],
    "attcem.attacks": ["ATTACKS", "Attack", "Reconstruction"],
    "attcem.config": ["Experiment"],
    "attcem.data": ["DATASETS", "load_data", "make_data"],
    "attcem.defences": ["DEFENCES", "Chain", "Defence", "Guard", "Noise", "create_defence"],
    "attcem.experiment": ["load_run", "run"],
    "attcem.models": ["BACKBONES", "Split", "split"],
    "attcem.report": ["write_report"],
    "attcem.ship": ["Device", "export", "read_artifact"],
    "attcem.train": ["evaluate", "fit"],
    "attcem.types": ["Batch", "Images", "Result", "View"],
}

__all__ = ["ATTACKS", "BACKBONES", "DATASETS", "DEFENCES"]
__all__ += ["Attack", "Batch", "Chain", "Defence", "Device", "Experiment", "Guard", "Images", "Noise"]
__all__ += ["Reconstruction", "Result", "Split", "View"]
__all__ += ["create_defence", "load_data", "load_run", "make_data", "split"]
__all__ += ["audit", "evaluate", "export", "fit", "read_artifact", "run", "write_report"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `attcem --help` needs no torch."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'attcem' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
