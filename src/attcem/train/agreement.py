"""Do a network, its guard and the data belong together? Asked once, before any work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from attcem.data import Data
from attcem.defences import Guard
from attcem.models import Split
from attcem.types import Images, Latent


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
            model.decoder(guard.release(z))
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
