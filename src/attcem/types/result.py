"""What one experiment found, and how it is kept."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from attcem.files import replacing, write_atomically
from attcem.types.scores import Scores

SCHEMA = "attcem-result-1"
TRAINED = "train/"
"""What comes from training, in the file that also holds a score for every image."""


@dataclass(frozen=True)
class Explanation:
    """One picture of what a run's defence looks at, with its words: `attcem explain` makes it, the report shows it."""

    file: str
    title: str
    caption: str
    png: bytes = field(repr=False)

    @classmethod
    def read(cls, folder: Path) -> list[Explanation]:
        """Those that lie in a folder; none where nobody has explained anything."""
        entries = folder / "entries.json"
        if not entries.exists():
            return []
        try:
            written = json.loads(entries.read_text())
            return [cls(**entry, png=(folder / Path(entry["file"]).name).read_bytes()) for entry in written]
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise ValueError(
                f"{entries} does not fit its pictures ({error}): run `attcem explain {folder.parent}` again, "
                f"or remove {folder}"
            ) from None


@dataclass
class Result:
    """What one experiment found: the content of `result.json`, plus per-image scores and sample pictures."""

    config: dict[str, Any]
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
    bounds: dict[str, Any] = field(default_factory=dict)
    """What theory promises: rates in nats, floors, or why there is none."""
    suite: str = ""
    """The suite's name and version."""
    threat: str = "query"
    skipped: dict[str, str] = field(default_factory=dict)
    """Attack → why it could not run under this threat model."""
    repeated: list[str] = field(default_factory=list)
    """Attacks on several sends of each image: not part of the worst case."""
    probes: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Probe → metric → its summary, with `chance` beside it."""
    curves: dict[str, dict[str, float]] = field(default_factory=dict)
    """`repeats` and `pairs`: MSE of the attack at each number of sends, or of public images."""
    risk: dict[str, Any] = field(default_factory=dict)
    """Of the worst case: percentiles, worst class, share of images that are plainly recognisable."""
    surrogate_only: float | None = None
    """How far the penalty fell when only the surrogate's own parameters learned; nothing without a surrogate."""
    clients: list[dict[str, Any]] = field(default_factory=list)
    """Where several trained together: each victim's images, classes, accuracy and worst case on its mix of classes."""
    labels: list[str] = field(default_factory=list)
    """Class names of the pictures in `gallery`, in order."""
    shown: list[int] = field(default_factory=list)
    """Which of the attacked images these are, as places in `per_image`; the first so many where it is empty."""
    schema: str = SCHEMA
    gallery: dict[str, UInt8[np.ndarray, "n h w c"]] = field(default_factory=dict, repr=False)
    """Row name → test pictures: `original`; `worst`, the closest reconstruction of each; the first few per attack."""
    per_image: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    """`attack/metric` → one value per attacked test image."""
    diagnostics: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    """`defence/figure` → one vector per epoch of training: histograms of gates, masses of slots."""
    explanations: list[Explanation] = field(default_factory=list, repr=False)
    """What `attcem explain` has put beside the result; read with it, never written."""

    BESIDE = ("gallery", "per_image", "diagnostics", "explanations")

    def to_json(self) -> dict[str, Any]:
        """Everything but the arrays, in plain JSON types."""
        data = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in self.BESIDE}
        for table in ("attacks", "baselines"):
            data[table] = {name: scores.to_json() for name, scores in data[table].items()}
        return data | {"worst": self.worst.to_json()}

    def save(self, folder: str | Path) -> Path:
        """Write result.json, images/ and diagnostics.npz; result.json last, so its presence means complete."""
        folder = Path(folder)
        (folder / "images").mkdir(parents=True, exist_ok=True)
        for name, pictures in self.gallery.items():
            strip = np.concatenate(list(pictures), axis=1)
            Image.fromarray(strip.squeeze(-1) if strip.shape[-1] == 1 else strip).save(
                folder / "images" / f"{name}.png"
            )
        with replacing(folder / "diagnostics.npz") as file:
            trained = {f"{TRAINED}{name}": values for name, values in self.diagnostics.items()}
            np.savez_compressed(file, **self.per_image, **trained)  # type: ignore[arg-type]
        return write_atomically(folder / "result.json", json.dumps(self.to_json(), indent=1).encode())

    @classmethod
    def load(cls, folder: str | Path) -> Result:
        """Read a run's folder back."""
        folder = Path(folder)
        try:
            data = json.loads((folder / "result.json").read_text())
        except FileNotFoundError:
            raise ValueError(f"{folder} holds no result.json: run `attcem audit {folder}` first") from None
        except json.JSONDecodeError as error:
            raise ValueError(
                f"{folder / 'result.json'} is not JSON ({error}): run `attcem audit {folder}` again"
            ) from None
        if data.get("schema") != SCHEMA:
            raise ValueError(
                f"{folder / 'result.json'} has schema {data.get('schema')!r}, this version reads {SCHEMA!r}"
            )
        for table in ("attacks", "baselines"):
            data[table] = {name: Scores.from_json(scores) for name, scores in data[table].items()}
        data["worst"] = Scores.from_json(data["worst"])
        result = cls(**data)
        strips = {path.stem: np.asarray(Image.open(path)) for path in sorted((folder / "images").glob("*.png"))}
        width = max((strip.shape[1] for strip in strips.values()), default=0) // max(1, len(result.labels))
        for name, strip in strips.items():
            strip = strip[..., None] if strip.ndim == 2 else strip
            result.gallery[name] = np.stack(np.split(strip, strip.shape[1] // width, axis=1))
        result.explanations = Explanation.read(folder / "explain")
        if (folder / "diagnostics.npz").exists():
            with np.load(folder / "diagnostics.npz") as arrays:
                for name, values in arrays.items():
                    if name.startswith(TRAINED):
                        result.diagnostics[name.removeprefix(TRAINED)] = values
                    else:
                        result.per_image[name] = values
        return result

    def report(self, path: str | Path) -> Path:
        """Write the one-page HTML report of this result alone."""
        from attcem.report import write_report

        return write_report([self], path)
