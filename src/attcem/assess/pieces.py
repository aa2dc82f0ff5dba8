"""What pieces of a release would tell alone: which entries it holds, what they are, which token is which."""

from collections.abc import Mapping
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attcem.assess.judge import Judge
from attcem.defences import Guard
from attcem.metrics import METRICS
from attcem.metrics.stats import bootstrap_interval, paired_bootstrap
from attcem.models import Split, attends, attention_maps
from attcem.threat import the_device
from attcem.types import Device, Images, Latent, Released, Scores

NEARLY = 0.9  # a piece that tells this share of what the whole tells beyond the mean image tells as much
MEASURES = ("mse", "ssim")


def pieces(model: Split, guard: Guard, some: Images) -> dict[str, Device]:
    """Piece → a device that sends nothing else; none where the release has no parts."""
    deployed, where = the_device(model, guard), next(model.parameters())

    def alone(name: str, z: Latent) -> Released:
        return guard.pieces(z)[name].float()

    def attended(x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b n i j"]:
        return attention_maps(model.encoder, x.to(where.device, where.dtype))

    with torch.no_grad():
        z = deployed.encode(some[:2].pixels())
        found = {name: Device(deployed.encode, partial(alone, name)) for name in guard.pieces(z)}
    if z.ndim == 3:
        found["unordered_tokens"] = Device(deployed.encode, lambda z: unordered(deployed.release(z)))
    if attends(model.encoder):
        found["attention"] = Device(attended, Tensor.float)
    return found


def unordered(tokens: Float[Tensor, "b n d"]) -> Float[Tensor, "b n d"]:
    """The tokens of each picture by their mean: nothing tells which was which."""
    order = tokens.mean(2).argsort(dim=1)
    return tokens.gather(1, order.unsqueeze(2).expand_as(tokens))


def weigh(
    judge: Judge, parts: Mapping[str, Float[Tensor, "n c h w"]], whole: Float[Tensor, "n c h w"]
) -> tuple[dict[str, Scores], list[str]]:
    """Scores of the guesses from every piece and from the whole; a flag for a piece that tells as much."""
    guesses = {**parts, "whole": whole}
    for name, guess in guesses.items():
        judge.score(f"piece {name}", guess)
    found = {name: judge.summary(f"piece {name}") for name in guesses}
    flags = []
    for name in parts:
        numbers = [
            f"{measure.upper()} {found[name].named()[measure]:.4f}, whole {found['whole'].named()[measure]:.4f}"
            for measure in MEASURES
            if tells_as_much(judge, name, measure)
        ]
        if numbers:
            flags.append(f"of what is sent, {name.replace('_', ' ')} alone tell as much ({'; '.join(numbers)})")
    return found, flags


def tells_as_much(judge: Judge, name: str, measure: str) -> bool:
    """Whether a piece surely gains most of what the whole gains over the mean image, and the whole surely gains."""
    sign, free = 2 * METRICS[measure].higher_is_better - 1, judge.scores["mean_image"][measure]
    piece, whole = (np.asarray(sign * (judge.scores[f"piece {one}"][measure] - free))[None] for one in (name, "whole"))
    return bootstrap_interval(whole)[0] > 0 and paired_bootstrap(piece, NEARLY * whole).low > 0
