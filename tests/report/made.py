"""Results made up for the report, so that every case of it can be written in one line."""

from typing import Any

import numpy as np

from attcem.types import Result, Scores, Summary

CLASSES = [f"class {i}" for i in range(10)]


def scores(mse: float, psnr: float = 20.0, ssim: float = 0.6, recon_acc: float = 0.5, reid: float = 0.4) -> Scores:
    spread = Summary(mse, mse / 2, mse * 2, 64)
    return Scores(spread, *(Summary(value, value, value, 64) for value in (psnr, ssim, recon_acc, reid)))


def make_result(
    *, mse: float = 0.004, accuracy: float = 0.889, defence: Any = None, seed: int = 0, channels: int = 1,
    pictures: int = 3, epochs: int = 4, mean_image: float = 0.08, flags: tuple[str, ...] = (), **config: Any,
) -> Result:  # fmt: skip
    rng = np.random.default_rng(seed)
    rows = ("original", "decoder", "ridge", "mean_image", "class_mean") if pictures else ()
    originals = np.random.default_rng(0).integers(0, 256, (pictures, 8, 8, channels), np.uint8)
    others = {row: rng.integers(0, 256, (pictures, 8, 8, channels), np.uint8) for row in rows}
    return Result(
        config={
            "data": {"name": "fashion", "seed": seed},
            "model": {"backbone": "vgg11_bn", "cut": 4, "bottleneck": None},
            "defence": defence or {},
            "audit": {"suite": "quick"},
            "seed": seed,
        }
        | config,
        seed=seed,
        accuracy=accuracy,
        attacks={"decoder": scores(mse * 1.1), "ridge": scores(mse * 1.5)},
        worst=scores(mse),
        baselines={
            "mean_image": scores(mean_image),
            "class_mean": scores(mean_image * 0.6),
            "nearest_public": scores(mean_image * 0.8),
        },
        per_class={name: {"accuracy": accuracy} for name in CLASSES},
        flags=list(flags),
        cost={"bytes": 2048, "train_s": 12.5},
        history=[
            {"epoch": e, "loss": 2 / (e + 1), "accuracy": 0.1 * e, "val_accuracy": 0.09 * e, "penalty": 0.5}
            for e in range(epochs)
        ],
        versions={"torch": "2.13.0"},
        commit="abc1234",
        labels=CLASSES[:pictures],
        gallery=others | ({"original": originals} if pictures else {}),
        per_image={f"{name}/mse": rng.uniform(0.5, 1.5, 64) * mse for name in ("decoder", "ridge")},
    )
