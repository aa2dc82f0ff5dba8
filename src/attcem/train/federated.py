"""The state of split federated training: who takes part, whose turn it is, when the mean is taken, what is kept."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor, nn

from attcem.config import ClientsConfig
from attcem.data import Data
from attcem.data.clients import deal_clients, fingerprint
from attcem.defences import Guard, own_parameters
from attcem.models import Split
from attcem.train.averaging import copy_into, exchanged, kept, restore_guards, under, weighted_mean
from attcem.train.diagnostics import Diagnostics
from attcem.train.learner import Learner
from attcem.train.loop import Training
from attcem.train.packing import pack, unpack_optimiser
from attcem.train.schedule import recipe_for

TALLIED = ("loss", "correct", "seen", "skipped")
"""What is counted for every client by itself."""


class Client(Learner):
    """One device and its owner: nothing in here has seen an image of anybody else."""

    since = 0
    """Images that it learned from since it last gave its encoder away."""

    def exchanged(self) -> dict[str, Tensor]:
        """What it gives away to be averaged."""
        return exchanged(self.model.encoder, self.guard)


class Federated(Training):
    """The state of one call of `fit_clients`; `model` and `guard` are the mean, which is validated and deployed."""

    learners: Sequence[Client]

    def __init__(self, model: Split, guard: Guard, data: Data, clients: ClientsConfig, **how: Any) -> None:
        self.clients = clients
        self.images = deal_clients(data, clients)
        super().__init__(model, guard, data, **how)
        self.state.config["clients"] = dataclasses.asdict(clients) | {"sha256": fingerprint(self.images)}
        self.tally: dict[int, dict[str, float]] = {}

    def equip(self) -> Sequence[Client]:
        """A client for every part of the images, all of them in front of one cloud half with one optimiser."""
        recipe = recipe_for(self.config)
        self.optimiser = recipe.optimiser(list(self.model.decoder.parameters()), [])
        self.optimisers = {"cloud": self.optimiser}
        made = []
        for number, images in enumerate(self.images):
            encoder, guard = self.copies()
            owner = "device" if self.clients.sync == "shared" else f"client.{number}"
            if owner not in self.optimisers:
                self.optimisers[owner] = recipe.optimiser(list(encoder.parameters()), own_parameters(guard))
            half = Split(encoder, self.model.decoder, latent_shape=self.model.latent_shape, classes=self.model.classes)
            both = [self.optimisers[owner], self.optimiser]
            made.append(Client(half, guard, images, both, self.config, self.seed + 1000 * number))
        return made

    def copies(self) -> tuple[nn.Module, Guard]:
        """Encoder and guard for one client: its own, or with the weights of all where these are shared."""
        if self.clients.sync == "shared":
            return self.model.encoder, copy.deepcopy(self.guard, {id(p): p for p in own_parameters(self.guard)})
        return copy.deepcopy(self.model.encoder), copy.deepcopy(self.guard)

    def attach(self, borrow: Callable[[str], None] | None) -> None:
        """Let every guard meet its encoder; one that is shared meets only the guard that is deployed."""
        super().attach(borrow)
        if self.clients.sync != "shared":
            for client in self.learners:
                copy_into(client.model.encoder.state_dict(), self.model.encoder.state_dict())
                client.guard.attach(client.model.encoder)

    def drawn(self, number: int) -> list[int]:
        """The clients that take part in an epoch, in the order in which they come."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + number + 500_000)
        order = torch.randperm(len(self.learners), generator=generator).tolist()
        return order[: max(1, round(self.clients.sampled * len(order)))]

    def length(self, number: int) -> int:
        """Batches of all the clients that take part."""
        return sum(len(self.learners[client].loader) for client in self.drawn(number))

    def steps(self, number: int) -> Iterator[dict[str, float]]:
        """A batch of every client in turn, as long as it has one; then, or at the epoch's end, the mean."""
        order, length, step = self.drawn(number), self.length(number), 0
        self.tally = {client: dict.fromkeys(TALLIED, 0.0) for client in sorted(order)}
        epochs = [self.learners[client].loader.epoch(number) for client in order]
        for turn, batches in enumerate(zip_longest(*epochs)):
            for client, batch in zip(order, batches, strict=True):
                if batch is None:
                    continue
                learner, (x, y) = self.learners[client], batch
                figures = learner.step(x, y, number + step / length, watched=Diagnostics.due(turn))
                learner.since += int(figures.get("seen", 0))
                for name in TALLIED:
                    self.tally[client][name] += figures.get(name, 0)
                step += 1
                yield figures
            if self.clients.sync == "batch":
                self.synchronise()
        self.synchronise()

    def synchronise(self) -> None:
        """Average what was learned since the last time, by images seen, and hand it to everyone and to the deployed."""
        active = [client for client in self.learners if client.since]
        if active and self.clients.sync != "shared":
            mean = weighted_mean([client.exchanged() for client in active], [client.since for client in active])
            for mine in (exchanged(self.model.encoder, self.guard), *(client.exchanged() for client in self.learners)):
                copy_into(mine, mean)
        for client in active:
            client.since = 0

    def train(self, number: int) -> dict[str, float]:
        """One epoch of everybody's, with a few figures of each client."""
        row = super().train(number)
        for client, figures in self.tally.items():
            row |= {f"client_{client}/{name}": figures[name] for name in ("seen", "skipped")}
            if figures["seen"]:
                row[f"client_{client}/loss"] = figures["loss"] / figures["seen"]
                row[f"client_{client}/accuracy"] = figures["correct"] / figures["seen"]
        return row

    def readings(self) -> tuple[dict[str, float], dict[str, list[float]]]:
        """What the guards saw in this epoch, averaged over the clients that took part."""
        together = Diagnostics()
        for client in self.learners:
            for found in client.diagnostics.close():
                together.take({name: torch.tensor(value, dtype=torch.float64) for name, value in found.items()})
        return together.close()

    def review(self, epochs_done: int) -> None:
        """Every client looks at its own images, and the deployed guard at those that only validate."""
        super().review(epochs_done)
        self.show(self.model, self.guard, self.data.validation, epochs_done)

    def packed(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """What is deployed, what every client keeps to itself, and all optimisers."""
        tensors = {
            f"{prefix}.{name}": tensor
            for prefix, module in self.modules.items()
            for name, tensor in module.state_dict().items()
        }
        plain: dict[str, Any] = {}
        for number, client in enumerate(self.learners):
            tensors |= {f"client.{number}.guard.{name}": tensor for name, tensor in kept(client.guard).items()}
        for owner, optimiser in self.optimisers.items():
            moments, numbers = pack({}, optimiser)
            tensors |= {f"{owner}.{name}": tensor for name, tensor in moments.items()}
            plain |= {f"{owner}.{name}": value for name, value in numbers.items()}
        return tensors, plain

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Load what is deployed and hand it to the clients, each of whom gets back what it kept."""
        super().restore(tensors)
        restore_guards([client.guard for client in self.learners], self.guard, tensors)
        for client in self.learners:
            copy_into(client.model.encoder.state_dict(), self.model.encoder.state_dict())

    def restore_optimisers(self, tensors: dict[str, Tensor]) -> None:
        """Load everybody's momentum."""
        for owner, optimiser in self.optimisers.items():
            unpack_optimiser(optimiser, under(tensors, f"{owner}."), under(self.state.optimiser, f"{owner}."))
