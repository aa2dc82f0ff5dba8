"""Is the person recognised from other photos? What noise and a condensed crossing leave of that, on faces.

    python -m benchmarks.identity orl --seeds 0 1 2                 # about 10 minutes a seed on one core
    python -m benchmarks.identity npz:faces.npz --seeds 0 1 2

An experiment, not a measure of speed: `make bench` leaves it out. Quarter-width vgg11_bn, cut 4, 60 epochs; every seed
deals the people anew: three in ten are the device's, three in ten the attacker's, the others the judge's. Attacked by a
linear guess, by a small decoder that goes on until a doubling gains less than 5 %, and by the probes of faces.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

import attcem
from attcem.attacks import PROBES, SUITES, Suite
from attcem.attacks.decoder import Decoder
from attcem.attacks.linear import Linear
from attcem.data import Data
from attcem.defences import Undefended
from attcem.types import Images, Result

LARGEST = 64  # pixels; larger faces are halved
EPOCHS, BATCH = 60, 16
MAP, CONDENSED = {"map": {"channels": 8}}, {"pool": {"condense": 64}}
NETWORKS: Mapping[str, tuple[dict, Any]] = {
    "map, no defence": (MAP, Undefended()),
    "map, noise .1": (MAP, attcem.Noise(sigma=0.1)),
    "map, noise .3": (MAP, attcem.Noise(sigma=0.3)),
    "condensed, noise .1": (CONDENSED, attcem.Noise(sigma=0.1)),
}
"""What crosses, and its defence."""

FACES = Suite(
    "faces",
    1,
    {"linear": Linear(), "decoder_small": Decoder(32, 2, cycle=300, doublings=4, tolerance=0.05)},
    {name: PROBES[name] for name in ("identity", "same_picture")},
)


def halved(images: Images) -> Images:
    """Means of 2 × 2 pixels, an odd last row or column left out."""
    n, height, width, colours = images.x.shape
    cells = images.x[:, : height // 2 * 2, : width // 2 * 2].reshape(n, height // 2, 2, width // 2, 2, colours)
    return Images(cells.float().mean((2, 4)).round().byte(), images.y)


def faces(name: str, seed: int) -> Data:
    data = attcem.load_data(name, strangers=True, test=0.4, seed=seed)
    if max(data.private.shape[1:]) <= LARGEST:
        return data
    parts = ("private", "validation", "public", "test", "strangers")
    return replace(data, **{part: halved(getattr(data, part)) for part in parts})


def audited(data: Data, crossing: dict, guard: Any, seed: int) -> Result:
    torch.manual_seed(seed)
    model = attcem.split("vgg11_bn", data=data, cut=4, width=0.25, crossing=crossing)
    attcem.fit(model, guard, data, epochs=EPOCHS, batch=BATCH, seed=seed, progress=False)
    return attcem.audit(model, guard, data, suite=FACES.name, images=len(data.test), seed=seed, progress=False)


def line(result: Result) -> str:
    """Accuracy, MSE over the mean image's, then rank 1, rank 5 and verification, each beside its chance."""
    free = result.baselines["mean_image"].mse
    cells = [f"accuracy {result.accuracy:.3f}  MSE ratio {result.worst.mse / free:.3f}  SSIM {result.worst.ssim:.3f}"]
    for probe, told in result.probes.items():
        found = {metric: score for metric, score in told.items() if isinstance(score, Mapping)}
        cells.append(
            f"{probe} " + ", ".join(f"{m} {s['mean']:.3f} (chance {s['chance']:.3f})" for m, s in found.items())
        )
    return "  |  ".join([*cells, *result.flags])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="a data set of faces, its classes the people")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    arguments = parser.parse_args()
    SUITES[FACES.name] = FACES
    for seed in arguments.seeds:
        data = faces(arguments.data, seed)
        for name, (crossing, guard) in NETWORKS.items():
            print(f"{name}, seed {seed}:  {line(audited(data, crossing, guard, seed))}", flush=True)
