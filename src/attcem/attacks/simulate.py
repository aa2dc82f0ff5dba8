"""Simulation during training: an honest server that learns an encoder like the clients' from all that it is sent."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attcem.attacks.hostile import HostileServer, Labels
from attcem.attacks.likeness import Likeness
from attcem.attacks.observed import Observed
from attcem.attacks.substitute import Network
from attcem.types import Released, View


@dataclass(eq=False)
class Simulate(HostileServer):
    """Trains an encoder that serves the cloud half and whose latents, class by class, look like those it is sent.

    In the setting of SDAR (Zhu et al., "Passive Inference Attacks on Split Learning via Adversarial Regularization",
    2023): the server follows the protocol, so nothing can be noticed, and sees what clients release all along. In
    place of their critics it has the distance that substitutes are trained with, and goes on as one of them when the
    clients' encoder stands still.
    """

    closeness: float = 1.0  # weight of looking like what is sent, against serving the cloud
    remembered: int = 1024  # latents that it compares with: older ones are of an encoder that is gone

    def begin(self, released: Released, labels: Labels) -> None:
        super().begin(released, labels)
        self.latents, self.labels, self.steps = released[:0], labels[:0], 0

    def respond(self, released: Released, labels: Labels, loss: Tensor, cloud: nn.Module) -> Tensor:
        """One step of its own; the client gets the gradient of the task."""
        self.latents = torch.cat([self.latents, released.detach()])[-self.remembered :]
        self.labels = torch.cat([self.labels, labels])[-self.remembered :]
        if self.steps % 20 == 0:
            self.likeness = Likeness(self.latents)
        self.steps += 1
        x, y = next(self.batches)
        own, training = self.imitate(x.to(released)), cloud.training
        task = F.cross_entropy(cloud.eval()(own), y)  # in this mode its running statistics stay those of the clients
        cloud.train(training)
        unlike = self.likeness(own, self.observed(self.latents, self.labels).like(y), y)
        self.optimiser.zero_grad()
        (task + self.closeness * unlike).backward(inputs=list(self.encoder.parameters()))
        self.optimiser.step()
        return loss

    def final(self, view: View, observed: Observed, seed: int, progress: bool) -> Network:
        """What the simulator becomes when it goes on with the latents that are attacked."""
        return self.inverter.substitute(view, observed, seed, progress, start=self.encoder)
