"""How much of what the task does not need leaves the device? Four crossings on garments before private notes.

    python -m benchmarks.clutter                                    # all four, one seed: most of an hour on one core
    python -m benchmarks.clutter --crossing pool attention --seeds 0 1 2 --epochs 8 --pictures pictures/

An experiment, not a measure of speed: `make bench` leaves it out. Noise σ .1 on quarter-width vgg11_bn, cut 4, attacked
by the decoders of the suite `demo`; for each picture the best of them counts, by every measure on its own. The error of
the clutter is that of all pixels outside the garment's box, and stands beside that of the mean image, which is free.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from jaxtyping import Bool, Float
from PIL import Image
from torch import Tensor

import attcem
from attcem.attacks import BASELINES, SUITES
from attcem.data import Data
from attcem.data.clutter import clutter_mask
from attcem.metrics import METRICS
from attcem.threat import build_view

CROSSINGS: dict[str, dict] = {
    "map": {"map": {"channels": 8}},
    "pool": {"pool": {"condense": 64}},
    "attention": {"attention": {"condense": 64}},
    "attention_grid": {"attention": {"grid": 2, "condense": 64}},
}
SIGMA, IMAGES, SHOWN = 0.1, 1000, 12

Pictures = Float[Tensor, "n 1 h w"]


def error(guess: Pictures, truth: Pictures, counted: Bool[Tensor, "n 1 h w"]) -> Float[Tensor, " n"]:
    """Mean of (x̂ − x)² over the pixels that count."""
    squares = (guess.clamp(0, 1) - truth).square() * counted
    return squares.sum((1, 2, 3)) / counted.sum((1, 2, 3))


def attacked(crossing: dict, data: Data, epochs: int, seed: int) -> tuple[dict[str, float], Pictures]:
    """The figures of one network, and for a few test images a row of each: the truth, then every decoder's guess."""
    torch.manual_seed(seed)
    model = attcem.split("vgg11_bn", data=data, cut=4, width=0.25, crossing=crossing)
    guard = attcem.Noise(sigma=SIGMA)
    attcem.fit(model, guard, data, epochs=epochs, seed=seed)
    view, images = build_view(model, guard, data, images=IMAGES, seed=seed)
    guesses = [attack(view, seed=seed, progress=True).images.cpu() for attack in SUITES["demo"].attacks.values()]
    truth, clutter, free = images.pixels(), clutter_mask(images), BASELINES["mean_image"](view, images.y)
    figures = {"accuracy": attcem.evaluate(model, guard, data.test)[1]}
    for name, counted in (("all", torch.ones_like(clutter)), ("garment", ~clutter), ("clutter", clutter)):
        best = torch.stack([error(guess, truth, counted) for guess in guesses]).amin(0).mean().item()
        figures |= {f"MSE {name}": best, f"{name} / mean image": best / error(free, truth, counted).mean().item()}
    figures["SSIM"] = torch.stack([METRICS["ssim"](guess, truth) for guess in guesses]).amax(0).mean().item()
    return figures, torch.stack([truth, *guesses])[:, :SHOWN]


def save_rows(rows: Float[Tensor, "rows n 1 h w"], path: Path) -> None:
    sheet = rows[:, :, 0].clamp(0, 1).mul(255).byte().permute(0, 2, 1, 3).flatten(2, 3).flatten(0, 1)
    Image.fromarray(sheet.numpy()).save(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crossing", nargs="+", choices=CROSSINGS, default=list(CROSSINGS))
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--pictures", type=Path, help="a folder for test images above what was made of them")
    arguments = parser.parse_args()
    data = attcem.load_data("clutter")
    for seed in arguments.seeds:
        for name in arguments.crossing:
            figures, rows = attacked(CROSSINGS[name], data, arguments.epochs, seed)
            print(
                f"{name}, seed {seed}:", *(f"{key} {value:.4f}" for key, value in figures.items()), sep="  ", flush=True
            )
            if arguments.pictures:
                arguments.pictures.mkdir(parents=True, exist_ok=True)
                save_rows(rows, arguments.pictures / f"{name}-{seed}.png")
