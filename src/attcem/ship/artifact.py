"""What is shipped: files, their hashes, and what anyone must know to use and to judge them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from attcem.reading.plain import MEGABYTE, read_content, read_json
from attcem.reading.typed import from_plain
from attcem.ship.graphs import random_operators
from attcem.types import Result

SCHEMA = "attcem-artifact-1"
MANIFEST, AUDIT = "artifact.json", "audit"
DEVICE, CLOUD, WEIGHTS = "device.onnx", "cloud.onnx", "model.safetensors"
LARGEST = 2048 * MEGABYTE


@dataclass(frozen=True)
class Picture:
    """What the device's half takes: float32 in [0, 1], channels first; what else an image needs is in the graph."""

    shape: list[int]
    classes: list[str]


@dataclass(frozen=True)
class Randomness:
    """An input of the device's half that must be drawn afresh for every picture, from a cryptographic source."""

    name: str
    distribution: str
    shape: list[int]


@dataclass(frozen=True)
class WireFormat:
    """What crosses: float32, or bytes whose codes stand for values on a grid from `low` to `high`."""

    bits: int  # of each number: 32, 8 or 4
    shape: list[int]  # of what is sent for one picture
    latent: list[int]  # of what it stands for
    low: float | None = None
    high: float | None = None

    @property
    def dtype(self) -> str:
        return "float32" if self.bits == 32 else "uint8"


@dataclass(frozen=True)
class File:
    """The content that a file had when it was shipped."""

    sha256: str
    bytes: int


@dataclass(frozen=True)
class Artifact:
    """The content of artifact.json."""

    picture: Picture
    randomness: list[Randomness]
    wire: WireFormat
    nats: float | None  # that one send tells at most, by the rate bound; nothing where no bound holds
    network: dict[str, Any] | None  # what `build_split` makes the network from; nothing for a module of one's own
    files: dict[str, File]
    versions: dict[str, str]
    schema: str = SCHEMA

    def save(self, folder: Path) -> None:
        (folder / MANIFEST).write_text(json.dumps(dataclasses.asdict(self), indent=1) + "\n")


def fingerprint(path: Path) -> File:
    content = read_content(path, LARGEST)
    return File(hashlib.sha256(content).hexdigest(), len(content))


def read_artifact(folder: str | Path) -> Artifact:
    """What a folder ships, after every file was found to be the one that was shipped and no graph draws by itself."""
    folder = Path(folder)
    if not (folder / MANIFEST).is_file():
        raise ValueError(f"{folder} holds no {MANIFEST}: make an artifact with `attcem export RUN --out {folder}`")
    data = read_json(folder / MANIFEST)
    if isinstance(data, dict) and data.get("schema") != SCHEMA:
        raise ValueError(f"{folder / MANIFEST} has schema {data.get('schema')!r}, this version reads {SCHEMA!r}")
    artifact = from_plain(Artifact, data, folder / MANIFEST)
    for name in (DEVICE, CLOUD):
        if name not in artifact.files:
            raise ValueError(f"{folder / MANIFEST} lists no {name}: export the run again")
    for name, shipped in artifact.files.items():
        path = inside(folder, name)
        if not path.is_file():
            raise ValueError(f"{folder} lacks {name}: export the run again")
        if fingerprint(path) != shipped:
            raise ValueError(f"{path} is not the file that was shipped: export the run again")
    for name in (DEVICE, CLOUD):
        if drawn := random_operators(folder / name):
            raise ValueError(f"{folder / name} draws its own random numbers ({', '.join(drawn)}): they are predictable")
    return artifact


def inside(folder: Path, name: str) -> Path:
    """A file of a folder, which no name leads out of."""
    parts = PurePosixPath(name).parts
    path = folder / name
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts or "\\" in name:
        raise ValueError(f"{folder / MANIFEST} names the file {name!r}, which is not inside the artifact")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{path} leads out of the artifact: ship the file itself, not a link")
    return path


def read_audit(folder: str | Path, artifact: Artifact) -> Result:
    """The audit that was shipped with the halves, which an artifact must have to be used."""
    folder = Path(folder)
    if f"{AUDIT}/result.json" not in artifact.files:
        raise ValueError(f"{folder} was shipped without an audit: audit the run, then export it again")
    return Result.load(folder / AUDIT)
