"""What an interrupted audit had finished: one file per attack, valid only for the very same question."""

import hashlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attcem.attacks import Attack, Reconstruction
from attcem.attacks.suite import digest
from attcem.files import replacing
from attcem.reading.arrays import read_arrays
from attcem.reading.content import MEGABYTE
from attcem.types import View

STATE = "learnt/"
"""Before the names of what an attack can go on from."""
KEPT = {"images": ("f", 4), "curve": ("f", 1), "warnings": ("U", 1), "gain": ("f", 0)}
"""Array → its kind and its number of axes."""
LARGEST = 64_000 * MEGABYTE
"""An archive that unpacks to more is taken for a bomb."""


class Finished:
    """Reconstructions kept under a name made of the attack's digest, the seed and the latents it attacked."""

    def __init__(self, folder: Path | None, view: View, seed: int) -> None:
        self.folder = folder
        self.question = hashlib.sha256(f"{seed}".encode() + view.targets.cpu().numpy().tobytes()).hexdigest()

    def path(self, name: str, attack: Attack) -> Path | None:
        """Where this attack's reconstruction lies; nowhere if nothing is kept."""
        if self.folder is None:
            return None
        asked = hashlib.sha256(f"{self.question}{digest(attack)}".encode()).hexdigest()[:16]
        return self.folder / f"{name}-{asked}.npz"

    def find(self, name: str, attack: Attack) -> Reconstruction | None:
        """What was found before; a file that is not whole counts as nothing."""
        path = self.path(name, attack)
        if path is None or not path.exists():
            return None
        try:
            return reconstruction(read_arrays(path, LARGEST))
        except (OSError, ValueError):
            return None

    def keep(self, name: str, attack: Attack, found: Reconstruction) -> None:
        path = self.path(name, attack)
        if path is None:
            return
        arrays: dict[str, Any] = {STATE + part: tensor.cpu().numpy() for part, tensor in found.state.items()} | {
            "images": found.images.cpu().numpy(),
            "curve": np.array(found.curve, dtype=np.float64),
            "warnings": np.array(found.flags, dtype=np.str_),
            "gain": np.float64(np.nan if found.gain is None else found.gain),
        }
        with replacing(path) as file:
            np.savez_compressed(file, **arrays)


def reconstruction(arrays: dict[str, np.ndarray]) -> Reconstruction:
    """What `Finished.keep` wrote; a ValueError where an array is missing or of another kind."""
    for name, (kind, axes) in KEPT.items():
        if name not in arrays or arrays[name].dtype.kind != kind or arrays[name].ndim != axes:
            raise ValueError(f"{name} is missing, or no array of {axes} axes of kind {kind!r}")
    state = {name.removeprefix(STATE): values for name, values in arrays.items() if name.startswith(STATE)}
    if any(values.dtype.kind not in "fiub" for values in state.values()):
        raise ValueError("what the attack goes on from is not numbers")
    images, curve, flags, gain = (arrays[name] for name in KEPT)
    expected = None if np.isnan(gain) else gain.item()
    learnt = {name: torch.from_numpy(values) for name, values in state.items()}
    return Reconstruction(torch.from_numpy(images), curve.tolist(), flags.tolist(), expected, learnt)


def forget(folder: Path) -> None:
    """Remove what an audit kept, once its result is safe."""
    shutil.rmtree(folder, ignore_errors=True)
