"""What theory promises for this device, whoever attacks."""

from typing import Any

import torch
from torch import Tensor

from attcem.data import Data
from attcem.defences import Defence, Guard, Stage
from attcem.metrics.bounds import bounds
from attcem.models import Split
from attcem.threat import the_device
from attcem.types import Scores

NUMBERS = 2**27
"""Of pixels, at most, that bounds are computed from: 10,000 images of 64×64, 891 of 224×224, in colour."""


def promises(model: Split, guard: Guard, data: Data) -> dict[str, Any]:
    """What theory says of any attack on this device, from its clean latents of the test images."""
    device = the_device(model, guard)
    some, most = data.test, max(1, NUMBERS // data.test.x[0].numel())
    if len(some) > most:
        some = some[torch.randperm(len(some), generator=torch.Generator().manual_seed(0))[:most]]
    pixels = some.pixels()
    changes = {name: link for name, link in guard.named.items() if type(link).release is not Defence.release}

    def before_noise(x: Tensor) -> Tensor:
        """What the noise is added to: the clean latent, transformed where a link does that first."""
        z = device.encode(x)
        for link in changes.values():
            if link.stage is Stage.TRANSFORM:
                z = link.release(z)
        return z.float()

    with torch.no_grad():
        latents = torch.cat([before_noise(x).cpu() for x in pixels.split(256)])
    others = [name for name, link in changes.items() if link.sigma == 0 and link.stage is not Stage.TRANSFORM]
    return bounds(latents, some.y, data.classes, guard.sigma, pixels, encode=before_noise, not_counted=others)


def below_the_floor(worst: Scores, promised: dict[str, Any]) -> list[str]:
    """Says when an attack did better than an estimate of what any attack can do."""
    floor = promised.get("mse_floor_estimate")
    if floor is None or worst.mse >= floor:
        return []
    words = f"an attack (MSE {worst.mse:.4f}) went below the floor's estimate ({floor:.4f})"
    return [f"{words}: pictures have more structure than the estimate assumes, do not quote it"]
