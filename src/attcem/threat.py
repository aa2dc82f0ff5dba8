"""The only door from defender to attacker: builds the View and keeps the truth for the judge."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor

from attcem.data import Data
from attcem.data.loader import in_order
from attcem.defences import Defence
from attcem.models import Split
from attcem.types import Images, Released, View


class Oracle:
    """The device as a black box: images in, what it would send out, with fresh noise at every query.

    The device is looked up, not held: whoever walks over a View's attributes never meets a weight.
    """

    __slots__ = ("__weakref__",)

    @torch.no_grad()
    def __call__(self, x: Float[Tensor, "b c h w"]) -> Released:
        """Query the device."""
        return _DEVICES[self](x)


_DEVICES: WeakKeyDictionary[Oracle, Callable[[Tensor], Tensor]] = WeakKeyDictionary()


def make_oracle(model: Split, guard: Defence) -> Oracle:
    """An oracle for the released graph of this network, exactly as it is deployed."""
    where = next(model.parameters())

    def device(x: Tensor) -> Tensor:
        return guard.release(model.encoder(x.to(where.device, where.dtype))).float()

    oracle = Oracle()
    _DEVICES[oracle] = device
    return oracle


def build_view(model: Split, guard: Defence, data: Data, *, images: int, seed: int = 0) -> tuple[View, Images]:
    """What the attacker gets, and the test images that it must not see.

    The attacked images are a seeded draw from the test partition; each is released once.
    """
    model.eval(), guard.eval()
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randperm(len(data.test), generator=generator)[:images]
    truth = data.test[chosen]
    oracle = make_oracle(model, guard)
    targets = torch.cat([oracle(x) for x, _ in in_order(truth)])
    if not targets.isfinite().all():
        raise ValueError(
            "the device releases values that are not finite: train again with a lower train.lr, or check the defence"
        )
    return View(public=data.public, oracle=oracle, targets=targets), truth
