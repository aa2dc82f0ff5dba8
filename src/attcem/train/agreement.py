"""Do a network, its guard and the data belong together? Asked once, before any work."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from attcem.data import Data
from attcem.defences import Defence, Guard
from attcem.models import Split
from attcem.types import Images, Latent


def check_arguments(model: Any, guard: Any, data: Any) -> Guard:
    """The guard, or a ValueError that says which argument is not what it should be, and how to make it."""
    if not isinstance(model, Split):
        made = 'attcem.split("vgg11_bn", data=data), or attcem.split(module, at=…, example=…)'
        raise ValueError(f"model is {kind(model)}, not a network cut in two: make it with {made}")
    if not isinstance(guard, Guard | Defence):
        made = "attcem.Noise(sigma=0.1), two of them added, or attcem.Guard() for no defence"
        raise ValueError(f"guard is {kind(guard)}, not a defence: give {made}")
    if not isinstance(data, Data):
        raise ValueError(f"data is {kind(data)}, not a data set in parts: make it with attcem.make_data or load_data")
    return Guard.of(guard)


def kind(given: Any) -> str:
    return f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"


def check_network(model: Split, data: Data, images: Images) -> Latent:
    """The latents of two of the images, or a ValueError that says what does not fit the data."""
    where, (c, h, w) = next(model.parameters()), images.shape
    advice = "build it for these data, attcem.split(…, data=data), or give data that it was built for"
    if model.classes < data.classes:
        raise ValueError(f"the data have {data.classes} classes, the network knows {model.classes}: {advice}")
    with in_evaluation(model):
        try:
            z = model.encoder(images[:2].pixels().to(where.device, where.dtype))
        except (RuntimeError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise ValueError(f"the network does not take images of {c}×{h}×{w} ({reason}): {advice}") from error
    if tuple(z.shape[1:]) != model.latent_shape:
        found, wanted = ("×".join(map(str, shape)) for shape in (z.shape[1:], model.latent_shape))
        raise ValueError(f"images of {c}×{h}×{w} give latents of {found}, the network has {wanted}: {advice}")
    return z


def check_guard(model: Split, guard: Guard, z: Latent) -> None:
    """Raise a ValueError where a guard cannot release latents of this network, most often as it was never set up."""
    with in_evaluation(model, guard):
        try:
            released = guard.release(z)
            if not isinstance(released, Tensor):
                raise ValueError(f"its release returns {kind(released)}, not a tensor")
            model.decoder(released)
        except (AttributeError, RuntimeError, TypeError, ValueError) as error:
            raise ValueError(
                f"the guard cannot release latents of this network ({str(error).splitlines()[0]}): train both, "
                "attcem.fit(model, guard, data), or take both from attcem.load_run"
            ) from error


@contextmanager
def in_evaluation(*modules: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode while it lasts, and no trace of it: neither gradients nor random numbers."""
    modes = [module.training for module in modules]
    for module in modules:
        module.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng():
            yield
    finally:
        for module, mode in zip(modules, modes, strict=True):
            module.train(mode)
