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


def rich_result(*, pictures: int = 40, size: int = 16, attacked: int = 60, epochs: int = 6, **options: Any) -> Result:
    """A result with everything a standard audit and a surrogate's training leave behind."""
    run = make_result(pictures=0, epochs=0, **options)
    rng = np.random.default_rng(run.seed)
    strength = float(run.worst.mse) / 0.08
    truth = shapes(attacked, size)
    hardness = np.random.default_rng(1).uniform(0.4, 1.6, attacked)
    for name, level in (("decoder", 1.1 * run.worst.mse), ("ridge", 1.5 * run.worst.mse), ("mean_image", 0.08)):
        mse = level * hardness * (rng.uniform(0.9, 1.1, attacked) if name != "mean_image" else 1)
        run.per_image |= {f"{name}/mse": mse, f"{name}/ssim": np.exp(-mse / 0.03)}
    for metric, best in (("mse", np.minimum), ("ssim", np.maximum)):
        run.per_image[f"worst/{metric}"] = best(run.per_image[f"decoder/{metric}"], run.per_image[f"ridge/{metric}"])
    average = np.broadcast_to(truth.mean(0), truth.shape)
    rebuilt = (1 - strength) * truth + strength * average + rng.normal(0, 12, truth.shape)
    run.gallery = {
        "original": truth[:pictures].astype(np.uint8),
        "worst": rebuilt[:pictures].clip(0, 255).astype(np.uint8),
        "decoder": rebuilt[:10].clip(0, 255).astype(np.uint8),
        "mean_image": average[:10].astype(np.uint8),
    }
    run.shown, run.labels = list(range(pictures)), [CLASSES[i % len(CLASSES)] for i in range(pictures)]
    run.per_class = {
        name: {"mse": run.worst.mse * (0.7 + 0.06 * i), "ssim": 0.6 - 0.02 * i, "n": 6}
        for i, name in enumerate(CLASSES)
    }
    run.curves = {
        "repeats": {"1": run.worst.mse, "4": run.worst.mse * 0.8, "16": run.worst.mse * 0.7},
        "pairs": {"100": run.worst.mse * 2, "1000": run.worst.mse * 1.4, "all": run.worst.mse},
        "stages": {"before_bottleneck": run.worst.mse / 4, "clean": run.worst.mse / 2, "released": run.worst.mse},
    }
    run.probes = {"same_picture": {"top1": {"mean": 0.4, "p05": 0, "p95": 1, "n": 60, "chance": 0.02}}} | described(0.4)
    run.cost |= {"step_ms": 20 + 10 * strength, "surrogate_share": 0.2, "params_device": 12345, "params_cloud": 1234567}
    run.bounds = {"rate": None, "why": "no noise: no bound"}
    if run.config["defence"]:
        fano = {"candidates": [100, 10_000], "queries": [1, 1], "success": [1.0, 0.83], "vacuous": [True, False]}
        floors = {"mse_floor_estimate": run.worst.mse / 3, "fisher": {"mse": run.worst.mse / 5}}
        run.bounds = {"rate_nats": 41.5, "fano": fano} | floors
        run.diagnostics = {
            "gated/dim_gate_histogram": rng.dirichlet(np.ones(16), epochs),
            "gated/slot_mass": rng.dirichlet(np.ones(8), epochs),
            "bound/slot_mass": np.ones((epochs, 1)),
        }
    run.history = [history_row(epoch, bool(run.config["defence"])) for epoch in range(1, epochs + 1)]
    return run


def described(share: float) -> dict[str, Any]:
    """What the attribute probe tells: all of them of so many pictures."""
    return {"attributes": {"all_right": {"mean": share, "p05": 0, "p95": 1, "n": 60, "chance": 0.05}}}


def history_row(epoch: int, defended: bool) -> dict[str, float]:
    row = {"epoch": epoch, "lr": 0.01 / epoch, "loss": 2 / epoch, "val_loss": 2.2 / epoch, "penalty": 0.0}
    row |= {"accuracy": 1 - 0.9 / epoch, "val_accuracy": 1 - 0.95 / epoch}
    if not defended:
        return row
    seen = {"intra_mse": 0.02 / epoch, "dim_gate": 0.5 / epoch, "snr_gate": 0.4, "class_gate": 0.7}
    shut = {"penalty": 0.3 / epoch, "penalty_weight": min(1.0, epoch / 3), "shut_off": float(epoch > 4)}
    return row | shut | {f"gated/{name}": value for name, value in seen.items()}


def shapes(count: int, size: int) -> np.ndarray:
    """Discs of different places, sizes and shades, (n h w 1): pictures that compress as pictures do."""
    rng = np.random.default_rng(0)
    across, down = np.meshgrid(np.linspace(0, 1, size), np.linspace(0, 1, size))
    found = []
    for _ in range(count):
        x, y, radius, shade = (
            rng.uniform(0.25, 0.75),
            rng.uniform(0.25, 0.75),
            rng.uniform(0.1, 0.4),
            rng.uniform(90, 250),
        )
        found.append(shade / (1 + np.exp(40 * (np.hypot(across - x, down - y) - radius))))
    return np.stack(found)[..., None]
