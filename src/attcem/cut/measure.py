"""One place, trained and measured on validation images: what it keeps, gives away, and asks of the device."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from attcem.assess.record import before_noise
from attcem.config import Experiment
from attcem.data.loader import in_order
from attcem.defences import Guard
from attcem.experiment import load_run, validate
from attcem.files import write_atomically
from attcem.maths.moments import segment_count, segment_sum
from attcem.metrics.cost import multiplications
from attcem.metrics.rate_bounds import rate_bounds
from attcem.models import Split
from attcem.parts import make_model
from attcem.reading.plain import read_json
from attcem.reading.typed import from_plain
from attcem.types import Images, Result

FILE = "place.json"


@dataclass(frozen=True)
class Measured:
    """What was found at one place with one seed, on validation images alone."""

    correct: list[int]  # 1 where the cloud names the class of a validation image rightly
    mse: list[float]  # worst case of every attacked validation image
    ssim: float
    mean_image_mse: float
    multiplications: float  # on the device, for one picture
    whole: float  # of the backbone as it is, both halves
    values: int  # that cross, for one picture
    bytes: int
    radius: float  # √(mean square distance to the mean of the own class, per value)
    inside: float  # share of the latents' variance that lies inside classes: 0 where classes have collapsed
    rate_nats: float | None  # upper bound on what crosses; nothing without noise

    @property
    def accuracy(self) -> float:
        return math.fsum(self.correct) / len(self.correct)

    @property
    def mse_ratio(self) -> float:
        """Over the mean image's: 1 is nothing beyond the free attack."""
        return math.fsum(self.mse) / len(self.mse) / self.mean_image_mse

    @property
    def device_share(self) -> float:
        """Of the backbone's multiplications."""
        return self.multiplications / self.whole

    @classmethod
    def read(cls, folder: Path) -> Measured:
        return from_plain(cls, read_json(folder / FILE), folder / FILE)


def measure(experiment: Experiment, folder: Path, *, resume: bool, jobs: int) -> tuple[Result, Path]:
    """Called as `attcem.experiment.run` is, but for validation images: a place may be chosen by what it writes."""
    result = validate(experiment, folder)
    model, guard, data = load_run(folder, experiment=experiment)
    seen = data.validation
    uncrossed = replace(experiment, model=replace(experiment.model, bottleneck=None, crossing=None))
    latents = clean_latents(model, guard, seen)
    inside, total = scatter(latents.flatten(1), seen.y, data.classes)
    noisy = guard.sigma > 0
    rates = rate_bounds(latents, seen.y, data.classes, guard.sigma) if noisy else {}
    found = Measured(
        correct=answers(model, guard, seen, experiment.audit.seed),
        mse=[float(value) for value in result.per_image["worst/mse"]],
        ssim=float(result.worst.ssim),
        mean_image_mse=float(result.baselines["mean_image"].mse),
        multiplications=result.cost["multiplications_device"],
        whole=multiplications(make_model(uncrossed, data).eval(), data.validation[:1].pixels()),
        values=int(result.cost["values"]),
        bytes=int(result.cost["bytes"]),
        radius=math.sqrt(inside),
        inside=inside / total if total else 0.0,
        rate_nats=min(map(float, rates.values())) if rates else None,
    )
    write_atomically(folder / FILE, json.dumps(asdict(found)).encode())
    return result, folder


@torch.no_grad()
def clean_latents(model: Split, guard: Guard, images: Images) -> Tensor:
    encode: Any = before_noise(model, guard)
    return torch.cat([encode(x).cpu() for x, _ in in_order(images)])


@torch.no_grad()
def answers(model: Split, guard: Guard, images: Images, seed: int) -> list[int]:
    """1 where the cloud is right about what the device sends."""
    where, right = next(model.parameters()), []
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for x, y in in_order(images, device=where.device):
            right += (model.decoder(guard.release(model.encoder(x.to(where.dtype)))).argmax(1) == y).int().tolist()
    return right


def scatter(z: Float[Tensor, "n d"], labels: Int64[Tensor, " n"], classes: int) -> tuple[float, float]:
    """Mean square distance per value, to the mean of the own class and to the mean of all."""
    means = segment_sum(z, labels, classes) / segment_count(labels, classes).clamp_min(1)[:, None]
    return (z - means[labels]).square().mean().item(), (z - z.mean(0)).square().mean().item()
