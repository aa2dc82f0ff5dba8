"""The shipped files at work: both graphs in onnxruntime, fed from the operating system's generator."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from attcem.defences import Wire
from attcem.ship.artifact import CLOUD, DEVICE, Artifact
from attcem.ship.graphs import open_session
from attcem.ship.halves import packed, unpacked
from attcem.ship.randomness import Source, draw
from attcem.types import Deployed, Device, Released


def deploy(folder: Path, artifact: Artifact, source: Source = os.urandom) -> Deployed:
    """What an audit attacks: the device sends with fresh numbers each time, the cloud answers what was sent."""
    device, cloud = open_session(folder / DEVICE), open_session(folder / CLOUD)
    form = artifact.wire
    grid = None if form.low is None or form.high is None else Wire(form.bits, form.low, form.high)

    def release(x: Float[Tensor, "b c h w"]) -> Released:
        drawn = {one.name: draw(one.distribution, (len(x), *one.shape), source) for one in artifact.randomness}
        sent = torch.from_numpy(device.run(None, {"image": x.float().numpy()} | drawn)[0])
        return sent if grid is None else unpacked(grid, sent, tuple(form.latent))

    def answer(released: Released) -> Float[Tensor, "b classes"]:
        sent = released if grid is None else packed(grid, released)
        return torch.from_numpy(cloud.run(None, {"sent": sent.numpy()})[0])

    return Deployed(Device(encode=lambda x: x, release=release), answer)
