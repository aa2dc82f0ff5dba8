"""How a network was trained, what the experiment found, and how that is kept."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from PIL import Image

from attcem.files import replacing, write_atomically
from attcem.reading.plain import read_json
from attcem.reading.typed import from_plain
from attcem.types.beside import TRAINED, Explanation, Gallery, check_shown, read_gallery, read_scores
from attcem.types.scores import OVER_FREE, Scores
from attcem.types.shapes import Bounds, Client, Config, Risk

SCHEMA = "attcem-result-1"
RENAMED = {"reidentify": "same_picture"}  # probes of older results


class OtherSchema(ValueError):
    """A result of another version: whole, but not for this one to read."""


@dataclass(frozen=True)
class Record:
    """What training leaves behind for the audit: a row of `history` and the vectors of `diagnostics` for each epoch."""

    seed: int
    history: list[dict[str, float]] = field(default_factory=list)
    diagnostics: list[dict[str, list[float]]] = field(default_factory=list)
    surrogate_only: dict[str, float] = field(default_factory=dict)
    """Link → how far its penalty fell when only its own parameters learned."""
    cost: dict[str, float] = field(default_factory=dict)
    defence: list[dict[str, Any]] | None = None
    """What it was trained under, as a configuration describes it; nothing where nobody knows."""
    config: dict[str, Any] = field(default_factory=dict)  # the settings of the training, a TrainConfig


@dataclass
class Result:
    """What one experiment found: the content of `result.json`, plus per-image scores and sample pictures."""

    config: Annotated[dict[str, Any], Config]
    seed: int
    accuracy: float
    attacks: dict[str, Scores]
    worst: Scores
    baselines: dict[str, Scores]
    per_class: dict[str, dict[str, float]]
    flags: list[str]
    cost: dict[str, float]
    history: list[dict[str, float]]
    versions: dict[str, str]
    commit: str
    bounds: Annotated[dict[str, Any], Bounds] = field(default_factory=dict)
    """What theory promises: rates in nats, floors, or why there is none."""
    suite: str = ""  # the suite's name and version
    threat: str = "query"
    skipped: dict[str, str] = field(default_factory=dict)  # attack → why it could not run under this threat model
    repeated: list[str] = field(default_factory=list)  # attacks on several sends of each image, not in the worst case
    probes: dict[str, dict[str, Any]] = field(default_factory=dict)  # probe → metric → its summary, and `chance`
    curves: dict[str, dict[str, float]] = field(default_factory=dict)
    """`repeats` and `pairs`: MSE of the attack at each number of sends, or of public images."""
    pieces: dict[str, Scores] = field(default_factory=dict)
    """Piece of what is sent, and the `whole` → what one small decoder makes of it alone; empty without parts."""
    risk: Annotated[dict[str, Any], Risk] = field(default_factory=dict)
    """Of the worst case: percentiles, worst class, share of images that are plainly recognisable."""
    surrogate_only: float | None = None
    """How far the penalty fell when only the surrogate's own parameters learned; nothing without a surrogate."""
    strengths: dict[str, str] = field(default_factory=dict)
    """Link of the defence → its option that sets how hard it protects; empty in older results."""
    clients: list[Annotated[dict[str, Any], Client]] = field(default_factory=list)
    """Where several trained together: each victim's images, classes, accuracy and worst case on its mix of classes."""
    labels: list[str] = field(default_factory=list)  # class names of the pictures in `gallery`, in order
    shown: list[int] = field(default_factory=list)
    """Which of the attacked images these are, as places in `per_image`; the first so many where it is empty."""
    schema: str = SCHEMA
    gallery: Gallery = field(default_factory=dict, repr=False)
    """Row name → test pictures: `original`; `worst`, the closest reconstruction of each; the first few per attack."""
    per_image: dict[str, np.ndarray] = field(default_factory=dict, repr=False)  # `attack/metric` → value per image
    diagnostics: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    """`defence/figure` → one vector per epoch of training: histograms of gates, masses of slots."""
    explanations: list[Explanation] = field(default_factory=list, repr=False)
    """What `attcem explain` has put beside the result; read with it, never written."""
    folder: Path | None = field(default=None, repr=False, compare=False)  # where it was read from

    BESIDE = ("gallery", "per_image", "diagnostics", "explanations", "folder")

    @property
    def mse_ratio(self) -> float:
        """The worst case's MSE over the mean image's: 1 is nothing beyond the free attack, 0 is the picture itself."""
        return self.over_free(self.worst, "mse")

    @property
    def psnr_gain(self) -> float:
        """The worst case's PSNR above the mean image's, in dB: 0 is nothing beyond the free attack."""
        return self.over_free(self.worst, "psnr")

    def over_free(self, scores: Scores, metric: str) -> float:
        """Scores of this run, told by what the mean image has for free; NaN where that was not measured."""
        free = self.baselines.get("mean_image")
        return math.nan if free is None else OVER_FREE[metric](scores.named()[metric], free.named()[metric])

    def to_json(self) -> dict[str, Any]:
        data = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in self.BESIDE}
        for table in ("attacks", "baselines", "pieces"):
            data[table] = {name: scores.to_json() for name, scores in data[table].items()}
        return data | {"worst": self.worst.to_json()}

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write result.json, images/ and diagnostics.npz; result.json last, so its presence means complete.

        Another result in this folder is replaced only with `overwrite`.
        """
        folder = Path(folder)
        content = json.dumps(self.to_json(), indent=1).encode()
        path = folder / "result.json"
        if not overwrite and path.exists() and path.read_bytes() != content:
            raise ValueError(f"{folder} holds another result: choose another folder, or replace it: overwrite=True")
        (folder / "images").mkdir(parents=True, exist_ok=True)
        for name, pictures in self.gallery.items():
            strip = np.concatenate(list(pictures), axis=1)
            picture = Image.fromarray(strip.squeeze(-1) if strip.shape[-1] == 1 else strip)
            picture.save(folder / "images" / f"{name}.png")
        with replacing(folder / "diagnostics.npz") as file:
            trained = {f"{TRAINED}{name}": values for name, values in self.diagnostics.items()}
            np.savez_compressed(file, **self.per_image, **trained)  # type: ignore[arg-type]
        return write_atomically(path, content)

    @classmethod
    def read(cls, path: Path) -> Result:
        """A result.json alone, without what lies beside it."""
        data = read_json(path)
        if isinstance(data, dict) and data.get("schema") != SCHEMA:
            raise OtherSchema(f"{path} has schema {data.get('schema')!r}, this version reads {SCHEMA!r}")
        result = from_plain(cls, data, path, without=cls.BESIDE)
        result.probes = {RENAMED.get(name, name): told for name, told in result.probes.items()}
        if not 0 <= result.accuracy <= 1:
            raise ValueError(f"{path} is damaged: accuracy must lie between 0 and 1, not {result.accuracy}")
        return result

    @classmethod
    def load(cls, folder: str | Path) -> Result:
        """Read a run's folder back."""
        folder = Path(folder)
        path = folder / "result.json"
        if folder.is_file():
            raise ValueError(f"{folder} is a file: give the run's folder, {folder.parent}")
        if not path.exists():
            raise ValueError(f"{folder} holds no result.json: run `attcem audit {folder}` first")
        result = cls.read(path)
        result.folder = folder
        result.gallery = read_gallery(folder / "images", len(result.labels))
        result.per_image, result.diagnostics = read_scores(folder / "diagnostics.npz")
        result.explanations = Explanation.read(folder / "explain")
        try:
            check_shown(result.shown, result.labels, result.gallery, result.per_image)
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        return result

    def report(self, path: str | Path) -> Path:
        """Write the one-page HTML report of this result alone."""
        import attcem

        return attcem.write_report([self], path)
