"""Checkpoints: safetensors beside a JSON that names them with their checksums, replaced in one atomic step."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from attcem.files import write_atomically

STATE = "state.json"


@dataclass
class State:
    """Where training stands; `files` maps last and best to a file's name and its sha256."""

    config: dict[str, Any]
    spec: dict[str, Any] | None
    seed: int
    epoch: int = 0
    finished: bool = False
    best_epoch: int = 0
    best_accuracy: float = -1.0
    history: list[dict[str, float]] = field(default_factory=list)
    diagnostics: list[dict[str, list[float]]] = field(default_factory=list)
    surrogate_only: dict[str, float] = field(default_factory=dict)
    cost: dict[str, float] = field(default_factory=dict)
    optimiser: dict[str, Any] = field(default_factory=dict)
    files: dict[str, dict[str, str]] = field(default_factory=dict)


def save_state(folder: Path, state: State, tensors: Mapping[str, Tensor], *, best: bool) -> None:
    """Write the tensors under a new name, then switch the JSON to them, then drop what it no longer names."""
    content = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
    entry = {"name": f"epoch-{state.epoch:04d}.safetensors", "sha256": hashlib.sha256(content).hexdigest()}
    write_atomically(folder / entry["name"], content)
    state.files["last"] = entry
    if best:
        state.files["best"] = entry
    write_state(folder, state)


def write_state(folder: Path, state: State) -> None:
    """Switch to this state atomically and remove tensor files that it does not name."""
    write_atomically(folder / STATE, json.dumps(asdict(state), indent=1).encode())
    drop_unnamed(folder, state)


def drop_unnamed(folder: Path, state: State) -> None:
    """Remove tensor files that a state does not name, such as a process leaves that is killed while it switches."""
    named = {entry["name"] for entry in state.files.values()}
    for path in folder.glob("*.safetensors"):
        if path.name not in named:
            path.unlink()


def read_state(folder: Path) -> State:
    """The state last switched to."""
    path = folder / STATE
    if not path.exists():
        raise ValueError(f"no checkpoint in {folder}: train first, or point at a run's folder")
    try:
        return State(**json.loads(path.read_text()))
    except (json.JSONDecodeError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error}): restore it from a copy, or train again") from None


def resumed_state(folder: Path, mine: State, *, tidy: bool) -> State:
    """The state to go on from, if it is one of this very run; `tidy` removes what a killed process left beside it."""
    state = read_state(folder)
    refuse_other(state, mine, folder.parent)
    if tidy:
        drop_unnamed(folder, state)
    return state


def read_tensors(folder: Path, state: State, which: str) -> dict[str, Tensor]:
    """The tensors of `last` or `best`, verified against the checksum in the state."""
    entry = state.files[which]
    path = folder / entry["name"]
    try:
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != entry["sha256"]:
            raise ValueError(f"{path} is damaged (its checksum differs): restore it from a copy, or train again")
        return load(content)
    except (FileNotFoundError, SafetensorError) as error:
        raise ValueError(f"{path} cannot be read ({error}): restore it from a copy, or train again") from None


def pack(modules: Mapping[str, torch.nn.Module], optimiser: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict]:
    """All tensors of the modules and the optimiser under flat names, and the optimiser's plain numbers."""
    tensors = {
        f"{prefix}.{name}": tensor for prefix, module in modules.items() for name, tensor in module.state_dict().items()
    }
    plain: dict[str, Any] = {}
    for index, slots in optimiser.state_dict()["state"].items():
        for slot, value in slots.items():
            if isinstance(value, Tensor):
                tensors[f"optimiser.{index}.{slot}"] = value
            else:
                plain[f"{index}.{slot}"] = value
    return tensors, plain


def unpack_modules(modules: Mapping[str, torch.nn.Module], tensors: Mapping[str, Tensor]) -> None:
    """Load each module's tensors back, strictly."""
    for prefix, module in modules.items():
        own = {name.removeprefix(f"{prefix}."): t for name, t in tensors.items() if name.startswith(f"{prefix}.")}
        try:
            module.load_state_dict(own)
        except RuntimeError as error:
            raise ValueError(f"the checkpoint does not fit this {prefix}: {error}") from None


def unpack_optimiser(optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor], plain: Mapping[str, Any]) -> None:
    """Load the optimiser's state back; learning rates are set by the schedule."""
    slots: dict[int, dict[str, Any]] = {}
    flat = {name.removeprefix("optimiser."): t for name, t in tensors.items() if name.startswith("optimiser.")}
    for name, value in (flat | dict(plain)).items():
        index, slot = name.split(".", 1)
        slots.setdefault(int(index), {})[slot] = value
    optimiser.load_state_dict({"state": slots, "param_groups": optimiser.state_dict()["param_groups"]})


def without_guard(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Only the split network's tensors."""
    return {name: tensor for name, tensor in tensors.items() if name.startswith("model.")}


def refuse_other(theirs: State, mine: State, out: Path) -> None:
    """Raise where a checkpoint belongs to a run of other settings."""
    for name in ("config", "seed", "spec"):
        if getattr(theirs, name) != getattr(mine, name):
            what = differences(getattr(theirs, name), getattr(mine, name))
            raise ValueError(f"{out} was trained with another {name}: {what}")


def differences(theirs: Any, mine: Any) -> str:
    """What differs, in a few words."""
    if isinstance(theirs, dict) and isinstance(mine, dict):
        keys = [key for key in {**theirs, **mine} if theirs.get(key) != mine.get(key)]
        return ", ".join(f"{key} was {theirs.get(key)!r}, now {mine.get(key)!r}" for key in keys)
    return f"was {theirs!r}, now {mine!r}"
