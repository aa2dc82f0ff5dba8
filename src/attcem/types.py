"""The shared vocabulary: what passes between the rooms of the house."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int64, UInt8
from PIL import Image
from torch import Tensor

SCHEMA = "attcem-result-1"
TRAINED = "train/"
"""What comes from training, in the file that also holds a score for every image."""

Latent = Float[Tensor, "b *latent"]
"""Clean encoder output ẑ: never leaves the device."""

Released = Float[Tensor, "b *latent"]
"""What leaves the device: every release hook applied, noise included."""


@dataclass(frozen=True)
class Images:
    """Labelled uint8 images, channels last as they lie in memory; `pixels` gives floats in [0,1]."""

    x: UInt8[Tensor, "n h w c"]
    y: Int64[Tensor, " n"]

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: slice | Tensor) -> Images:
        return Images(self.x[index], self.y[index])

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width of one image, as a network sees it."""
        _, h, w, c = self.x.shape
        return c, h, w

    def pixels(self) -> Float[Tensor, "n c h w"]:
        """Images in [0,1], laid out channels_last."""
        return self.x.permute(0, 3, 1, 2).float().div_(255)


@dataclass(frozen=True)
class Batch:
    """One training batch as a defence sees it: images, labels, clean latents."""

    x: Float[Tensor, "b c h w"]
    y: Int64[Tensor, " b"]
    z: Latent


GRANTS: dict[str, frozenset[str]] = {
    "black_box": frozenset({"public", "labels", "logits"}),
    "query": frozenset({"public", "labels", "logits", "queries"}),
    "white_box": frozenset({"public", "labels", "logits", "queries", "weights", "gradients"}),
}
"""Threat model → what it grants the attacker; an attack that needs more is skipped."""


@runtime_checkable
class Oracle(Protocol):
    """The device as a black box: images in, what it would send out, with fresh noise at every query."""

    def __call__(self, x: Float[Tensor, "b c h w"], repeats: int = 1) -> Released:
        """What the device sends for these images, averaged over so many queries of each."""

    def record(self, batches: Iterable[Float[Tensor, "b c h w"]]) -> Recording:
        """Images that will be queried often: encoded once, released afresh each time."""


@runtime_checkable
class Recording(Protocol):
    """Images that the device has encoded once; a draw of them equals a query, without the cost of the encoder."""

    def __call__(self, index: Int64[Tensor, " b"], repeats: int = 1) -> Released:
        """What the device sends for some of the images, averaged over so many queries of each."""


@dataclass(frozen=True)
class Device:
    """The device as someone with its weights runs it: differentiable, with fresh noise at every release."""

    encode: Callable[[Float[Tensor, "b c h w"]], Latent]
    release: Callable[[Latent], Released]


@dataclass(frozen=True)
class View:
    """Everything an attacker holds. What the threat model does not grant is None.

    The attacker is the cloud: it owns public images, sees the latents to invert, and runs the cloud half on them.
    """

    public: Images
    oracle: Oracle | None
    targets: Released
    cloud: Callable[[Released], Float[Tensor, "b classes"]] | None = None
    """The cloud half: logits, differentiable in the latent."""
    resend: Callable[[int], Released] | None = None
    """The device sends the first so many of the attacked images once more."""
    device: Device | None = None
    gallery: Images | None = None
    """Candidates with the attacked images among them: for re-identification only."""
    notes: dict[Any, Any] = field(default_factory=dict, repr=False)
    """What attacks have found out and later ones may use: trained decoders, recordings."""


class Summary(float):
    """A mean that remembers its spread: it prints and computes as the mean."""

    p05: float
    p95: float
    n: int

    def __new__(cls, mean: float, p05: float, p95: float, n: int) -> Summary:
        """Build from the four numbers that a result file keeps."""
        self = super().__new__(cls, mean)
        self.p05, self.p95, self.n = float(p05), float(p95), int(n)
        return self

    @classmethod
    def of(cls, values: np.ndarray) -> Summary:
        """Summarise one value per image; an image that was not attacked has none (NaN)."""
        values = values[~np.isnan(values)]
        p05, p95 = np.percentile(values, [5, 95])
        return cls(float(np.mean(values)), p05, p95, len(values))

    def to_json(self) -> dict[str, float]:
        """The four numbers by name."""
        return {"mean": float(self), "p05": self.p05, "p95": self.p95, "n": self.n}


@dataclass(frozen=True)
class Scores:
    """How well one attack did, each metric summarised over the attacked images."""

    mse: Summary
    psnr: Summary
    ssim: Summary
    recon_acc: Summary
    reid_top1: Summary
    more: dict[str, Summary] = field(default_factory=dict)
    """Metrics that not every result has, by name."""

    def to_json(self) -> dict[str, dict[str, float]]:
        """Metric → mean, p05, p95, n."""
        return {name: summary.to_json() for name, summary in self.named().items()}

    def named(self) -> dict[str, Summary]:
        """Every metric by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "more"} | self.more

    @classmethod
    def of(cls, found: dict[str, Summary]) -> Scores:
        """The five that every result has, and whatever else was measured."""
        always = {f.name for f in dataclasses.fields(cls)} - {"more"}
        more = {name: summary for name, summary in found.items() if name not in always}
        return cls(**{name: found[name] for name in always}, more=more)

    @classmethod
    def from_json(cls, data: dict[str, dict[str, Any]]) -> Scores:
        """The inverse of `to_json`."""
        return cls.of({name: Summary(**numbers) for name, numbers in data.items()})


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
    labels: list[str] = field(default_factory=list)
    """Class names of the pictures in `gallery`, in order."""
    schema: str = SCHEMA
    gallery: dict[str, UInt8[np.ndarray, "n h w c"]] = field(default_factory=dict, repr=False)
    """Row name → the same few test pictures: `original`, one row per attack, one per baseline."""
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
        for path in sorted((folder / "images").glob("*.png")):
            strip = np.asarray(Image.open(path))
            strip = strip[..., None] if strip.ndim == 2 else strip
            result.gallery[path.stem] = np.stack(np.split(strip, max(1, len(result.labels)), axis=1))
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


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes the path's place at the end: a reader, or a crash, sees the old or the new, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> Path:
    """Write a whole file, or nothing."""
    with replacing(path) as file:
        file.write(content)
    return path
