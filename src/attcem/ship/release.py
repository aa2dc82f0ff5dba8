"""The device's half as one step: a picture goes in, a message with fresh noise comes out, nothing else."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from attcem.reading.plain import read_content
from attcem.ship.artifact import DEVICE, LARGEST, Artifact
from attcem.ship.graphs import open_session
from attcem.ship.randomness import LAWS, Source, draw

Release = Callable[[np.ndarray], np.ndarray]


def open_release(folder: Path, artifact: Artifact, source: Source = os.urandom) -> Release:
    """What turns a picture into what is sent, with randomness drawn anew at every call.

    The graph stays inside: no caller can run it without noise.
    """
    content = read_content(folder / DEVICE, LARGEST)
    if hashlib.sha256(content).hexdigest() != artifact.files[DEVICE].sha256:
        raise ValueError(f"{folder / DEVICE} is not the file that was shipped: export the run again")
    session = open_session(content)
    wanted = ["image", *(each.name for each in artifact.randomness)]
    if sorted(each.name for each in session.get_inputs()) != sorted(wanted):
        raise ValueError(f"{folder / DEVICE} does not take what its artifact declares: export the run again")
    if [each.name for each in session.get_outputs()] != ["sent"]:
        raise ValueError(f"{folder / DEVICE} gives more than what is sent: export the run again")
    if unknown := [each.distribution for each in artifact.randomness if each.distribution not in LAWS]:
        raise ValueError(f"{folder} asks for noise that is {unknown[0]}, known are {', '.join(LAWS)}")

    def release(picture: np.ndarray) -> np.ndarray:
        noise = {one.name: draw(one.distribution, (1, *one.shape), source) for one in artifact.randomness}
        sent = session.run(["sent"], {"image": picture[None].astype(np.float32, copy=False)} | noise)[0]
        if sent.dtype != artifact.wire.dtype or list(sent.shape) != [1, *artifact.wire.shape]:
            raise ValueError(f"the device's half gave {sent.dtype} {sent.shape}, not what was audited: nothing is sent")
        if sent.dtype.kind == "f" and not np.isfinite(sent).all():
            raise ValueError("the device's half gave numbers that are not finite: nothing is sent")
        return sent

    return release
