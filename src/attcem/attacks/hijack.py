"""Feature-space hijacking: the server trains the clients' encoders towards its own, which it can invert."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attcem.attacks.base import update
from attcem.attacks.hostile import HostileServer, Labels
from attcem.attacks.inverter import Inverter
from attcem.attacks.likeness import Likeness
from attcem.types import Released


@dataclass(eq=False)
class Hijack(HostileServer):
    """Sends gradients that make released latents look like those of its own encoder (FSHA).

    Pasquini, Ateniese and Bernaschi, "Unleashing the Tiger", CCS 2021. Its encoder first learns, with a decoder, to
    keep the picture. Where they have a critic, the distance is the one that substitutes are trained with: federated
    training has fewer steps than a critic needs. The task is not learned.
    """

    strength: float = 10.0  # of the gradients it sends: clients take steps in proportion to them, until they clip
    practice: int = 300  # steps in which its own pair learns before the first answer
    by_class: bool = (
        False  # latents shall look like its own of the same class: closer, and with gradients that know labels
    )

    steers = True

    def begin(self, released: Released, labels: Labels) -> None:
        super().begin(released, labels)
        mean = self.public.mean().to(released)
        decoder = Inverter(released, mean, self.channels, blocks=2).to(released)
        decoder.linear = None
        optimiser = torch.optim.Adam([*self.encoder.parameters(), *decoder.parameters()], self.lr)
        for x, _ in islice(self.batches, self.practice):
            update(optimiser, F.mse_loss(decoder(self.imitate(x.to(released))), x.to(released)))
        self.encoder.eval()
        with torch.no_grad():
            own = torch.cat([self.imitate(x.to(released)) for x in self.public.pixels().to(released.device).split(256)])
        kinds = self.public.y.to(labels) if self.by_class else torch.zeros(len(own)).to(labels)
        self.goal, self.likeness = self.observed(own, kinds), Likeness(own)

    def respond(self, released: Released, labels: Labels, loss: Tensor, cloud: nn.Module) -> Tensor:
        """Distance of what was released from what its own encoder makes of public pictures."""
        kinds = labels if self.by_class else torch.zeros_like(labels)
        return self.strength * self.likeness(released, self.goal.like(kinds), kinds)
