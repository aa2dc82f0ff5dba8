"""The only door from defender to attacker: builds the View and keeps the truth for the judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor

from attcem.config import GRANTS
from attcem.data import Data
from attcem.data.loader import in_order
from attcem.defences import Defence, Guard
from attcem.models import Split
from attcem.naming import look_up
from attcem.types import Deployed, Device, Images, Latent, Recording, Released, View

_SEALED: WeakKeyDictionary[Sealed, Any] = WeakKeyDictionary()


class Sealed:
    """Something an attacker can call but not open: what does the work is looked up, not held.

    Whoever walks over a View's attributes never meets a weight or a private latent.
    """

    __slots__ = ("__weakref__",)

    def __init__(self, behind: Any) -> None:
        _SEALED[self] = behind

    def __call__(self, *args: Any, **options: Any) -> Any:
        return _SEALED[self](*args, **options)


class Oracle(Sealed):
    """The device as a black box: images in, what it would send out, with fresh noise at every query."""

    __slots__ = ()

    @torch.no_grad()
    def __call__(self, x: Float[Tensor, "b c h w"], repeats: int = 1) -> Released:
        device = _SEALED[self]
        return averaged(device.release, device.encode(x), repeats)

    @torch.no_grad()
    def record(self, batches: Iterable[Float[Tensor, "b c h w"]]) -> Recording:
        device = _SEALED[self]
        latents = torch.cat([device.encode(x) for x in batches])
        return Sealed(torch.no_grad()(lambda index, repeats=1: averaged(device.release, latents[index], repeats)))


def averaged(release: Callable[[Latent], Released], z: Latent, repeats: int) -> Released:
    return sum((release(z) for _ in range(repeats - 1)), release(z)) / repeats


def the_device(model: Split, guard: Guard | Defence) -> Device:
    """The released graph of this network, exactly as it is deployed."""
    where = next(model.parameters())
    return Device(lambda x: model.encoder(x.to(where.device, where.dtype)), release=lambda z: guard.release(z).float())


def make_oracle(model: Split, guard: Guard | Defence) -> Oracle:
    return Oracle(the_device(model, guard))


def build_view(
    model: Split,
    guard: Guard | Defence,
    data: Data,
    *,
    images: int,
    seed: int = 0,
    threat: str = "query",
    deployed: Deployed | None = None,
) -> tuple[View, Images]:
    """What the attacker gets under a threat model, and the test images that it must not see.

    The attacked images are a seeded draw from the test partition; each is released once. Where the halves are
    `deployed`, what they send is attacked, and the network in Python gives only its gradients.
    """
    granted = look_up("threat model", threat, GRANTS)
    model.eval(), guard.eval()
    order = torch.randperm(len(data.test), generator=torch.Generator().manual_seed(seed))
    truth, where = data.test[order[:images]], next(model.parameters())
    cloud = Sealed(lambda released: model.decoder(released.to(where.device, where.dtype)).float())
    own = the_device(model, guard)
    view = view_through(deployed.device if deployed else own, data.public, truth, granted)
    return replace(view, cloud=cloud, device=own if view.device else None), truth


def view_through(device: Device, public: Images, truth: Images, granted: frozenset[str]) -> View:
    """What a device sends of some images, and the ways of asking it that are granted."""
    with torch.no_grad():
        latents = torch.cat([device.encode(x) for x, _ in in_order(truth)])
        targets = device.release(latents)
    if not targets.isfinite().all():
        advice = "train again with a lower train.lr, or check the defence"
        raise ValueError(f"the device releases values that are not finite: {advice}")
    return View(
        public=public,
        oracle=Oracle(device) if "queries" in granted else None,
        targets=targets,
        resend=Sealed(torch.no_grad()(lambda most: device.release(latents[:most]))),
        device=device if "weights" in granted else None,
    )
