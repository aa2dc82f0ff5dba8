"""A server that is after the pictures of clients while they train: it gets an encoder like theirs, and inverts it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, count

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from attcem.attacks.base import Pictures, Reconstruction, seeded
from attcem.attacks.observed import Observed
from attcem.attacks.pairs import AUGMENT
from attcem.attacks.substitute import Network, Substitute
from attcem.data.loader import Loader
from attcem.maths import gaussian_like
from attcem.types import Images, Released, View

Labels = Int64[Tensor, " b"]


@dataclass(eq=False)
class HostileServer(ABC):
    """What hostile servers share: public pictures, and a network in the encoder's place.

    They hold the cloud half and see every released batch with its labels; they may not query. How an encoder that is
    like the devices' is inverted is `Substitute`'s business.
    """

    public: Images
    noise: float = 0.0  # what the devices add, which is no secret
    channels: int = 32
    lr: float = 2e-3
    seed: int = 0
    inverter: Substitute = field(default_factory=Substitute)

    steers = False  # whether it sends other gradients than those of the task
    """A server that steers decides what is deployed, too: the encoder as the last epoch leaves it."""

    def answer(self, released: Released, labels: Labels, loss: Tensor, cloud: nn.Module) -> Tensor:
        """What is differentiated in place of the task's loss.

        Nobody else's random numbers change, nor does the cloud half, so that an honest answer leaves no trace.
        """
        with seeded(self.seed):
            self.seed += 1
            if not hasattr(self, "encoder"):
                self.begin(released.detach(), labels)
            return self.respond(released, labels, loss, cloud)

    def begin(self, released: Released, labels: Labels) -> None:
        """A network for latents of this shape, once the first are seen."""
        self.encoder = Network(self.public.shape, self.observed(released, labels), self.channels).to(released)
        self.optimiser = torch.optim.Adam(self.encoder.parameters(), self.lr, betas=(0.9, 0.99))
        size = min(len(labels), len(self.public))
        loader = Loader(self.public, size, device=released.device, augment=AUGMENT, seed=self.seed)
        self.batches: Iterator[tuple[Tensor, Labels]] = chain.from_iterable(map(loader.epoch, count()))

    def observed(self, released: Released, labels: Labels) -> Observed:
        return Observed(released, torch.full_like(released[0], self.noise), labels)

    def imitate(self, x: Pictures) -> Released:
        """What the server's own encoder would release."""
        z = self.encoder(x)
        return z + self.noise * gaussian_like(z)

    @abstractmethod
    def respond(self, released: Released, labels: Labels, loss: Tensor, cloud: nn.Module) -> Tensor:
        """Learn from a batch of a client, and answer it."""

    def reconstruct(self, view: View, *, seed: int = 0, progress: bool = False) -> Reconstruction:
        """Invert what was released, as if the devices' encoder were the server's own."""
        return self.inverter.through(lambda observed: self.final(view, observed, seed, progress), view, seed, progress)

    def final(self, view: View, observed: Observed, seed: int, progress: bool) -> Network:
        """The server's own encoder once training is over."""
        return self.encoder.eval()
