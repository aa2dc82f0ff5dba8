"""Finished attacks are kept, one in each file: for an audit that was interrupted, or that several processes share."""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from attcem.attacks import Attack, Reconstruction
from attcem.attacks.suite import digest
from attcem.cores import cores
from attcem.files import replacing
from attcem.locks import held
from attcem.progress import say
from attcem.reading.arrays import read_arrays
from attcem.reading.plain import MEGABYTE
from attcem.types import View

PATIENCE = 0.5  # seconds between two looks at what other processes have finished
STATE = "learnt/"  # before the names of what an attack can go on from
KEPT = {"images": ("f", 4), "curve": ("f", 1), "warnings": ("U", 1), "gain": ("f", 0)}
"""Array → its kind and its number of axes."""
LARGEST = 64_000 * MEGABYTE  # an archive that unpacks to more is taken for a bomb


class Finished:
    """Reconstructions kept under a name made of the attack's digest, the seed and the latents it attacked."""

    def __init__(self, folder: Path | None, view: View, seed: int) -> None:
        self.folder = folder
        self.question = hashlib.sha256(f"{seed}".encode() + view.targets.cpu().numpy().tobytes()).hexdigest()

    def path(self, name: str, attack: Attack) -> Path | None:
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


def next_to(suite: dict[str, Attack], name: str) -> list[str]:
    """The attacks that go on with what this one finds."""
    return [other for other, attack in suite.items() if other != name and attack.builds_on == suite[name]]


def following(suite: dict[str, Attack], name: str, take: Callable[[Iterable[float]], float]) -> float:
    """The effort of an attack and of those that wait for it: of all (sum), or of the longest row of them (max)."""
    return suite[name].effort + take([0.0, *(following(suite, other, take) for other in next_to(suite, name))])


def jobs_worth(suite: dict[str, Attack]) -> int:
    """How many processes a suite keeps busy: more do not help who waits for its longest row; at most one a core."""
    longest = max(following(suite, name, max) for name in suite)
    return max(1, min(cores(), int(sum(attack.effort for attack in suite.values()) / longest)))


def take_part(suite: dict[str, Attack], view: View, kept: Finished, *, seed: int, processes: int = 1) -> None:
    """Do what no other process has taken, one attack after the other, until nothing is left to take or to wait for."""
    started, paid = time.perf_counter(), 0.0
    for name in to_do(suite, view, kept, seed):
        say(f"attack {name}")
        began = time.perf_counter()
        kept.keep(name, suite[name], suite[name](view, seed=seed, progress=True))
        paid += suite[name].effort
        now, missing = time.perf_counter(), [one for other, one in suite.items() if not kept.find(other, one)]
        left = (now - started) * sum(one.effort for one in missing) / paid / processes / 60
        done = f"{len(suite) - len(missing)} of {len(suite)} done, about {left:.0f} min left"
        say(f"{name}: finished after {now - began:.0f} s; {done}")


def to_do(suite: dict[str, Attack], view: View, kept: Finished, seed: int) -> Iterator[str]:
    """Attacks for this process, each held until the next is asked for; first those for which most effort waits.

    An attack that builds on another of the suite waits until that is finished, by whomever. One that a process died in
    is left to the audit, as is what waits for it: it might take this process down, too.
    """
    assert kept.folder is not None, "processes meet in a folder"
    missing, elsewhere = sorted(suite, key=lambda name: -following(suite, name, sum)), set[str]()
    while missing:
        others_at_work = False
        for name in [name for name in missing if not any(name in next_to(suite, other) for other in missing)]:
            with held(kept.folder / f"{name}.lock") as free:
                if not free:
                    elsewhere.add(name)
                    others_at_work = True
                    continue
                found = kept.find(name, suite[name])
                if found is not None:
                    suite[name].recall(view, found, seed=seed)
                elif name in elsewhere:
                    continue
                else:
                    yield name
            missing.remove(name)
            break
        else:
            if not others_at_work:
                return
            time.sleep(PATIENCE)
