"""Where the protection comes from: the same decoder before the bottleneck, after it, and on what is released."""

from __future__ import annotations

from torch import nn

from attcem.attacks import Attack
from attcem.data import Data
from attcem.defences import Guard
from attcem.metrics import METRICS
from attcem.models import Split
from attcem.progress import say
from attcem.threat import the_device, view_through
from attcem.types import Device, Images, Latent


def stages(
    attack: Attack | None,
    model: Split,
    guard: Guard,
    data: Data,
    truth: Images,
    *,
    seed: int,
    progress: bool = False,
) -> dict[str, float]:
    """Stage → MSE of one attack there; only the last stage, `released`, is anything that an attacker sees."""
    if attack is None:
        return {}
    deployed = the_device(model, guard)
    devices = {"clean": Device(deployed.encode, unchanged), "released": deployed}
    inner = before_bottleneck(model.encoder)
    if inner is not None:
        where = next(model.parameters())
        devices = {
            "before_bottleneck": Device(lambda x: inner(x.to(where.device, where.dtype)).float(), unchanged)
        } | devices
    found = {}
    for stage, device in devices.items():
        guess = attack(view_through(device, data.public, truth, frozenset({"queries"})), seed=seed)
        found[stage] = METRICS["mse"](guess.images.cpu(), truth.pixels()).mean().item()
        say(f"one small decoder, {stage.replace('_', ' ')}: MSE {found[stage]:.5f}", shown=progress)
    return found


def unchanged(z: Latent) -> Latent:
    """Releases the latent without any defence."""
    return z.float()


def before_bottleneck(encoder: nn.Module) -> nn.Module | None:
    """The part of an encoder before its bottleneck; nothing where it has none."""
    names = [name for name, _ in encoder.named_children()]
    if "bottleneck" not in names or not isinstance(encoder, nn.Sequential):
        return None
    return encoder[: names.index("bottleneck")]
