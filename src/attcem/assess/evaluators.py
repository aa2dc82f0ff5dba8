"""The independent judge of a data set: trained once, then read from the cache by every audit of it."""

import hashlib
from contextlib import suppress
from pathlib import Path

import torch
from safetensors.torch import save

from attcem.attacks.suite import RECIPE
from attcem.data import Data, default_root
from attcem.files import write_atomically
from attcem.metrics import Evaluator
from attcem.reading.content import MEGABYTE, read_content
from attcem.reading.tensors import tensors_of
from attcem.types import Images

CPU = torch.device("cpu")
LARGEST = 64 * MEGABYTE
"""A judge of a thousand classes takes one."""

_TRAINED: dict[tuple[str, torch.device], Evaluator] = {}


def evaluator_for(data: Data, seen: int, progress: bool, device: torch.device = CPU) -> Evaluator:
    """The judge of this data, trained on `seen` of the private images, on none of which any attack is scored.

    It works on the given device, wherever it was trained first.
    """
    name = digest(data.private, data.classes, seen)
    if (name, device) not in _TRAINED:
        path, images = default_root() / "evaluators" / f"{name}.safetensors", data.private.to(device)
        with torch.random.fork_rng():  # an audit's own draws must not depend on what lies in the cache
            found = read(path, images, data.classes)
            if found is None:
                found = Evaluator.train(images, data.classes, seed=0, progress=progress, seen=seen)
                state = {key: tensor.cpu().contiguous() for key, tensor in found.network.state_dict().items()}
                state["accuracy"] = torch.tensor(found.accuracy, dtype=torch.float64)
                with suppress(OSError):
                    write_atomically(path, save(state))
        _TRAINED[name, device] = found
    return _TRAINED[name, device]


def digest(images: Images, classes: int, seen: int) -> str:
    """What tells one evaluator from another: its very images and labels, and how long it learns."""
    found = hashlib.sha256(f"{RECIPE} {classes} {seen} {tuple(images.x.shape)}".encode())
    for tensor in (images.x, images.y):
        found.update(tensor.cpu().contiguous().numpy().data)
    return found.hexdigest()[:32]


def read(path: Path, images: Images, classes: int) -> Evaluator | None:
    """The one that was kept; a file that is missing or not whole counts as nothing."""
    try:
        found = Evaluator.restored(tensors_of(read_content(path, LARGEST), path), images, classes)
        return found if 0 <= found.accuracy <= 1 else None
    except (OSError, ValueError, KeyError, RuntimeError):
        return None
