"""The two halves as pure functions: image and randomness to what is sent, and what is sent to logits."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from attcem.defences import Guard, Wire
from attcem.models import Split
from attcem.types import Released

Sent = Float[Tensor, " b *latent"] | UInt8[Tensor, " b *latent"] | UInt8[Tensor, "b bytes"]


def wire_of(guard: Guard) -> Wire | None:
    """The link that puts numbers on a grid; without one they are sent as floats."""
    wires = [link for link in guard.links if isinstance(link, Wire)]
    if len(wires) > 1:
        raise ValueError(f"the guard has {len(wires)} links `wire`, and only the last is sent: keep one of them")
    return wires[0] if wires else None


class DeviceHalf(nn.Module):
    """Image and the random numbers of each link that draws any, in the guard's order → what is sent."""

    def __init__(self, model: Split, guard: Guard) -> None:
        super().__init__()
        self.encoder, self.guard, self.wire = model.encoder, guard, wire_of(guard)

    def forward(self, image: Float[Tensor, "b c h w"], *randomness: Tensor) -> Sent:
        """What leaves the device."""
        noise = dict(zip(self.guard.distributions, randomness, strict=True))
        released = self.guard.release(self.encoder(image), noise)
        return released if self.wire is None else packed(self.wire, released)


class CloudHalf(nn.Module):
    """What was sent → logits."""

    def __init__(self, model: Split, guard: Guard) -> None:
        super().__init__()
        self.decoder, self.wire, self.latent = model.decoder, wire_of(guard), model.latent_shape

    def forward(self, sent: Sent) -> Float[Tensor, "b classes"]:
        """The decoder on what the device released."""
        return self.decoder(sent if self.wire is None else unpacked(self.wire, sent, self.latent))


def packed(wire: Wire, released: Released) -> UInt8[Tensor, " b *latent"] | UInt8[Tensor, "b bytes"]:
    """Codes as bytes: one each with 8 bits; with 4, two in a byte, the first in its upper half."""
    codes = wire.codes(released)
    if wire.bits == 8:
        return codes.to(torch.uint8)
    flat = codes.flatten(1)
    pairs = F.pad(flat, (0, flat.shape[1] % 2))
    return (16 * pairs[:, 0::2] + pairs[:, 1::2]).to(torch.uint8)


def unpacked(wire: Wire, sent: Tensor, latent: tuple[int, ...]) -> Released:
    """The released values that bytes stand for."""
    codes = sent.to(torch.float32)
    if wire.bits == 4:
        upper = (codes / 16).floor()
        codes = torch.stack([upper, codes - 16 * upper], 2).flatten(1)[:, : math.prod(latent)]
    return wire.values(codes.unflatten(1, latent) if wire.bits == 4 else codes)
