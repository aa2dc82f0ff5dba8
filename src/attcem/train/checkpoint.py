"""Checkpoints: safetensors beside a JSON that names them with their checksums, replaced in one atomic step."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypedDict

from safetensors.torch import save
from torch import Tensor

from attcem.files import write_atomically
from attcem.reading.arrays import tensors_of
from attcem.reading.plain import open_plain, read_json
from attcem.reading.typed import from_plain
from attcem.types import Record

STATE = "state.json"
ADVICE = "restore it from a copy, or train again"
OWN_NAME = re.compile(r"epoch-\d{4,}\.safetensors")


class TensorFile(TypedDict):
    """Where tensors lie, and what they are checked against."""

    name: str
    sha256: str


class Spec(TypedDict):
    """What a split network is rebuilt from."""

    backbone: str
    shape: list[int]
    classes: int
    cut: int | None
    crossing: dict[str, Any] | None
    width: float
    activation: str


@dataclass
class State:
    """Where training stands; `files` maps last and best to a name and its sha256, `dropped` those before them."""

    config: dict[str, Any]
    spec: Annotated[dict[str, Any], Spec] | None
    seed: int
    epoch: int = 0
    finished: bool = False
    best_epoch: int = 0
    best_accuracy: float = -1.0
    history: list[dict[str, float]] = field(default_factory=list)
    diagnostics: list[dict[str, list[float]]] = field(default_factory=list)
    surrogate_only: dict[str, float] = field(default_factory=dict)
    cost: dict[str, float] = field(default_factory=dict)
    optimiser: dict[str, float | None] = field(default_factory=dict)
    files: dict[str, Annotated[dict[str, str], TensorFile]] = field(default_factory=dict)
    dropped: list[Annotated[dict[str, str], TensorFile]] = field(default_factory=list)
    draw: str = ""  # sha256 of the images' positions in the data set; empty where that is not known
    defence: list[dict[str, Any]] | None = None
    """What it is trained under, as a configuration describes it; nothing in files of an earlier version."""

    @property
    def record(self) -> Record:
        told = (self.history, self.diagnostics, self.surrogate_only, self.cost, self.defence, self.config)
        return Record(self.seed, *told)


def save_state(folder: Path, state: State, tensors: Mapping[str, Tensor], *, best: bool) -> None:
    """Write the tensors under a new name, then switch the JSON to them, then remove those that they replace."""
    content = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
    entry = {"name": f"epoch-{state.epoch:04d}.safetensors", "sha256": digest(content)}
    write_atomically(folder / entry["name"], content)
    write_state(folder, state, state.files | {"last": entry} | ({"best": entry} if best else {}))


def write_state(folder: Path, state: State, files: dict[str, dict[str, str]]) -> None:
    """Switch to these files atomically; the state names those that it drops, so that the next process finds them."""
    kept = {entry["name"] for entry in files.values()}
    dropped = {entry["name"]: entry for entry in state.files.values() if entry["name"] not in kept}
    switched = replace(state, files=files, dropped=list(dropped.values()))
    write_atomically(folder / STATE, json.dumps(asdict(switched), indent=1).encode())
    state.files, state.dropped = switched.files, switched.dropped
    remove_dropped(folder, state)


def remove_dropped(folder: Path, state: State) -> None:
    """Remove the files that a state has dropped and that are still there; one of other content is somebody else's."""
    for entry in state.dropped:
        path = folder / entry["name"]
        if OWN_NAME.fullmatch(entry["name"]) and path.is_file() and digest(path.read_bytes()) == entry["sha256"]:
            path.unlink()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_state(folder: Path) -> State:
    """The state last switched to."""
    path = folder / STATE
    if not path.exists():
        raise ValueError(f"no checkpoint in {folder}: train first, or point at a run's folder")
    try:
        return from_plain(State, read_json(path), path)
    except ValueError as error:
        raise ValueError(f"{error}: {ADVICE}") from None


def resumed_state(folder: Path, mine: State, *, resume: bool, tidy: bool) -> State | None:
    """The state to go on from, if there is one; it must be one of this very run.

    `tidy` removes what a killed process left beside it. A link would write checkpoints to somewhere else.
    """
    if folder.is_symlink():
        raise ValueError(f"{folder} is a link to {folder.resolve()}: remove it, or link the whole run's folder instead")
    if not (folder / STATE).exists():
        return None
    if not resume:
        raise ValueError(f"{folder.parent} already holds a run: resume it, or choose another folder")
    state = read_state(folder)
    refuse_other(state, mine, folder.parent)
    if tidy:
        remove_dropped(folder, state)
    return state


def read_tensors(folder: Path, state: State, which: str) -> dict[str, Tensor]:
    """The tensors of `last` or `best`, verified against the checksum in the state."""
    if which not in state.files:
        raise ValueError(f"{folder / STATE} names no {which!r} tensors: {ADVICE}")
    entry = state.files[which]
    path = folder / Path(entry["name"]).name
    try:
        with open_plain(path) as file:
            content = file.read()
        if digest(content) != entry["sha256"]:
            raise ValueError(f"{path} is damaged (its checksum differs)")
        return tensors_of(content, path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}): {ADVICE}") from None
    except ValueError as error:
        raise ValueError(f"{error}: {ADVICE}") from None


def best_of(run: str | Path) -> dict[str, Tensor]:
    """The tensors of another run's best epoch, to start from."""
    folder = Path(run) / "checkpoint"
    state = read_state(folder)
    if "best" not in state.files:
        raise ValueError(f"{run} has no validated epoch yet: continue it with `attcem run {run} --resume`")
    return read_tensors(folder, state, "best")


def refuse_other(theirs: State, mine: State, out: Path) -> None:
    """Raise where a checkpoint belongs to a run of other settings; where it was trained does not matter."""
    before, now = ({**vars(state), "config": {**state.config, "device": "any"}} for state in (theirs, mine))
    for name in ("config", "seed", "spec", "defence"):
        if before[name] != now[name] and not (name == "defence" and before[name] is None):
            raise ValueError(f"{out} was trained with another {name}: {differences(before[name], now[name])}")
    refuse_other_draw(theirs, mine.draw, out)


def refuse_other_draw(state: State, draw: str, out: Path) -> None:
    """Raise where the data are drawn otherwise than for training: private images might be public or tested now."""
    if state.draw and draw and state.draw != draw:
        raise ValueError(
            f"{out} was trained on other images than its settings draw now ({state.draw[:8]}, now {draw[:8]}): "
            "the data set, or the search for duplicates in it, has changed; train again"
        )


def differences(theirs: Any, mine: Any) -> str:
    if isinstance(theirs, dict) and isinstance(mine, dict):
        keys = [key for key in {**theirs, **mine} if theirs.get(key) != mine.get(key)]
        return ", ".join(f"{key} was {theirs.get(key)!r}, now {mine.get(key)!r}" for key in keys)
    return f"was {theirs!r}, now {mine!r}"
