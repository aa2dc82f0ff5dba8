"""What a result says besides scores: its origin and cost, what theory promises, what the defences say of themselves."""

import hashlib
import json
import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attcem.attacks import Reconstruction
from attcem.config import AuditConfig
from attcem.data import Data
from attcem.defences import Defence, Guard, Stage, describe
from attcem.metrics.bounds import bounds
from attcem.metrics.cost import multiplications
from attcem.models import Split
from attcem.threat import the_device
from attcem.train import gradient_flags, honesty_flags, in_evaluation
from attcem.types import Images, Latent, Record, Scores

SHOWN = 10  # so many pictures are kept of every attack
KEPT, ROOM = 256, 2**21  # so many pictures are kept of the worst case, or as many as fit in this many bytes
EXTREMES = 3  # of all attacked images, so many that leak most, least, and in the middle are kept as well
NUMBERS = 2**27  # of pixels, at most, that bounds are computed from: 10,000 images of 64×64, 891 of 224×224, in colour


def training_flags(record: Record, guard: Guard) -> list[str]:
    fallen = record.surrogate_only.items()
    bound = {name: getattr(link, "bounds_information", False) for name, link in guard.named.items()}
    flags = guard.flags + [flag for name, fall in fallen for flag in honesty_flags(name, fall, bound.get(name, False))]
    flags += gradient_flags(record.history)
    lost = record.cost.get("lost_penalties", 0)
    steps = round(1000 * record.cost.get("train_s", 0) / max(record.cost.get("step_ms", 0), 1e-9))
    if lost > steps / 100:
        flags.append(
            f"penalties were not finite {lost:.0f} times in {steps} steps and counted as zero: the defence did nothing "
            "then; check its penalty, or lower train.lr"
        )
    audited = describe(guard)
    if record.defence is not None and record.defence != audited:
        flags.append(f"audited under {audited or 'no defence'}, but trained under {record.defence or 'no defence'}")
    return flags


@torch.no_grad()
def release_flags(guard: Guard, z: Latent) -> list[str]:
    flags, training = [], guard.training
    with torch.random.fork_rng():
        released = []
        for mode in (True, False):
            torch.manual_seed(0)
            released.append(guard.train(mode).release(z))
        if not torch.equal(*released):
            flags.append("the guard releases something else in training than now: only what leaves now was attacked")
        given, before = guard.draw(z), torch.random.get_rng_state()
        guard.release(z, given)
        if not torch.equal(torch.random.get_rng_state(), before):
            flags.append("the guard draws random numbers that it does not declare: take them as an argument of release")
    guard.train(training)
    return flags


def promises(model: Split, guard: Guard, data: Data) -> dict[str, Any]:
    """What theory says of any attack on this device, from its clean latents of the test images."""
    some, most = data.test, max(1, NUMBERS // data.test.x[0].numel())
    if len(some) > most:
        some = some[torch.randperm(len(some), generator=torch.Generator().manual_seed(0))[:most]]
    pixels, encode = some.pixels(), before_noise(model, guard)
    with torch.no_grad():
        latents = torch.cat([encode(x).cpu() for x in pixels.split(256)])
    others = [name for name, link in changing(guard).items() if link.sigma == 0 and link.stage is not Stage.TRANSFORM]
    return bounds(latents, some.y, data.classes, guard.sigma, pixels, encode=encode, not_counted=others)


def before_noise(model: Split, guard: Guard) -> Callable[[Tensor], Latent]:
    """From pixels to what noise is added to: the clean latent, transformed where a link does that first."""
    encode = the_device(model, guard).encode
    first = [link for link in changing(guard).values() if link.stage is Stage.TRANSFORM]

    def encode_and_transform(x: Tensor) -> Latent:
        return reduce(lambda z, link: link.release(z), first, encode(x)).float()

    return encode_and_transform


def changing(guard: Guard) -> dict[str, Defence]:
    """The links that change what is released."""
    return {name: link for name, link in guard.named.items() if type(link).release is not Defence.release}


def below_the_floor(worst: Scores, promised: dict[str, Any]) -> list[str]:
    floor = promised.get("mse_floor_estimate")
    if floor is None or worst.mse >= floor:
        return []
    words = f"an attack (MSE {worst.mse:.4f}) went below the floor's estimate ({floor:.4f})"
    return [f"{words}: pictures have more structure than the estimate assumes, do not quote it"]


def stack_epochs(epochs: list[dict[str, list[float]]]) -> dict[str, np.ndarray]:
    """Name → one row per epoch; epochs without a reading are rows of NaN."""
    lengths = {name: len(vector) for epoch in epochs for name, vector in epoch.items()}
    return {
        name: np.array([epoch.get(name, [np.nan] * length) for epoch in epochs], dtype=np.float32)
        for name, length in lengths.items()
    }


def parameters(model: Split) -> dict[str, int]:
    halves = {"device": model.encoder, "cloud": model.decoder}
    return {side: sum(parameter.numel() for parameter in half.parameters()) for side, half in halves.items()}


def costs(model: Split, images: Images, targets: Tensor) -> dict[str, float]:
    where = next(model.parameters())
    with in_evaluation(model):
        computed = multiplications(model.encoder, images[:1].pixels().to(where.device, where.dtype))
    sizes: dict[str, float] = {f"params_{side}": count for side, count in parameters(model).items()}
    sent = {"values": targets[0].numel(), "bytes": targets[0].numel() * targets.element_size()}
    return sizes | sent | {"multiplications_device": computed}


def shown(truth: Images, mse: Float[Tensor, " n"]) -> list[int]:
    """Which attacked images are kept as pictures: the first so many, and the ends and the middle of all by leak."""
    first = min(len(truth), KEPT, max(SHOWN, ROOM // truth.x[0].numel()))
    order, few = mse.argsort(stable=True).tolist(), min(EXTREMES, len(truth))
    middle = (len(order) - few) // 2
    return list(dict.fromkeys([*range(first), *order[:few], *order[middle : middle + few], *order[-few:]]))


def gallery(
    truth: Images, guesses: Mapping[str, Reconstruction], closest: Sequence[str], kept: Sequence[int]
) -> dict[str, np.ndarray]:
    """Originals, each one's closest reconstruction, and the first few of every guess that made as many."""
    few = min(SHOWN, len(truth))
    worst = torch.stack([guesses[closest[i]].images[i].cpu() for i in kept])
    rows = {name: guess.images[:few].cpu() for name, guess in guesses.items() if len(guess.images) >= few}
    eight_bit = {name: (x.clamp(0, 1) * 255).round().to(torch.uint8) for name, x in (rows | {"worst": worst}).items()}
    originals = {"original": truth.x[list(kept)].numpy()}
    return originals | {name: x.permute(0, 2, 3, 1).numpy() for name, x in eight_bit.items()}


def describe_experiment(model: Split, guard: Guard, data: Data, config: AuditConfig) -> dict[str, Any]:
    """The configuration of something that was put together by hand; its training if that is known."""
    trained = {"train": model.record.config} if model.record and model.record.config else {}
    shapes = [[name, list(parameter.shape)] for name, parameter in model.named_parameters()]
    own = {  # what identifies a network of the user's own
        "backbone": "custom",
        "latent": list(model.latent_shape),
        "parameters": parameters(model),
        "sha256": hashlib.sha256(json.dumps(shapes).encode()).hexdigest(),
    }
    return {
        "data": {"name": data.name, **data.draw},
        "model": model.spec or own,
        **trained,
        "defence": describe(guard),
        "audit": {"suite": config.suite, "images": config.images, "seed": config.seed},
    }


def current_commit() -> str:
    """The commit this code was run from, or an empty string outside a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: version(name) for name in ("attcem", "torch", "numpy")}
