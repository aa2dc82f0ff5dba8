"""Split federated training: several clients, each with images of its own, and one cloud half."""

import copy
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attcem.config import ClientsConfig, TrainConfig, with_options
from attcem.data import Data
from attcem.data.clients import deal_clients, fingerprint
from attcem.defences import Defence, Guard, own_parameters
from attcem.models import Split
from attcem.train.agreement import check_arguments, check_network
from attcem.train.averaging import copy_into, exchanged, kept, restore_guards, weighted_mean
from attcem.train.checkpoint import State
from attcem.train.diagnostics import Diagnostics
from attcem.train.distributed import team_size
from attcem.train.gradients import StepReport
from attcem.train.learner import Learner
from attcem.train.loop import Training
from attcem.train.prediction import review_images
from attcem.train.schedule import recipe_for
from attcem.train.server import HONEST, Server, gradient_gap
from attcem.train.team import ALONE

TALLIED = ("loss", "correct", "seen", "skipped")  # what is counted for every client by itself


def refuse_processes() -> None:
    """Raise where torchrun has started several processes: clients take turns, in one of them."""
    if team_size() > 1:
        raise ValueError("clients are trained in one process: start it without torchrun, or set clients.count to 1")


def fit_clients(
    model: Split,
    guard: Guard | Defence,
    data: Data,
    clients: ClientsConfig,
    config: TrainConfig | None = None,
    *,
    seed: int = 0,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = True,
    server: Server = HONEST,
    **options: Any,
) -> tuple[State, list[Guard]]:
    """Train a split network on images that several clients own; returns the record and every client's guard.

        deal the private images; give every client a copy of encoder and guard
        for each epoch:
            draw the clients that take part
            until all of them have seen their images:
                each in turn: a step of `fit` on a batch of its own; it moves its encoder, its guard, and the cloud half
                sync=batch: average encoders and what guards have learned, by images seen; hand the mean to everyone
            sync=epoch: average once, here
            every client reviews its own images, validate the mean, write a checkpoint
        load the best epoch

    With sync=shared there is one encoder, which passes from client to client with its momentum. `model` and `guard`
    end as the mean that is deployed; the guard has seen no client's image. `options` are fields of TrainConfig; `out`
    and `resume` are those of `fit`. A `server` that is not honest answers the clients in its own way, and what it has
    learned is in no checkpoint.
    """
    refuse_processes()
    config = with_options(config or TrainConfig(), options)
    guard = check_arguments(model, guard, data)
    check_network(model, data, data.private)
    if resume and server is not HONEST:
        raise ValueError("what a server has learned is in no checkpoint: train with it from the beginning")
    with ALONE.lock_folder(out), torch.random.fork_rng():
        torch.manual_seed(seed)
        how: dict[str, Any] = {"config": config, "seed": seed, "out": out, "progress": progress}
        training = Federated(model, guard, data, clients, server, **how)
        return training.run(resume), [client.guard.eval() for client in training.learners]


class Client(Learner):
    """One device and its owner: nothing in here has seen an image of anybody else."""

    since = 0  # images that it learned from since it last gave its encoder away

    def __init__(self, *given: Any, server: Server) -> None:
        super().__init__(*given)
        self.server = server
        self.gaps: list[float] = []  # of the gradients that it was sent in this epoch

    def learned(self, report: StepReport) -> None:
        """A client also looks at what it was sent."""
        super().learned(report)
        self.gaps.append(gradient_gap(report.at_task, report.batch.y))

    def close_gap(self) -> dict[str, float]:
        """The mean over an epoch, nothing where no batch had two images of a class and another class."""
        found = [gap for gap in self.gaps if math.isfinite(gap)]
        self.gaps = []
        return {"gradient_gap": math.fsum(found) / len(found)} if found else {}

    def exchanged(self) -> dict[str, Tensor]:
        return exchanged(self.model.encoder, self.guard)


class Federated(Training):
    """The state of one call of `fit_clients`; `model` and `guard` are the mean, which is validated and deployed."""

    learners: Sequence[Client]

    def __init__(
        self,
        model: Split,
        guard: Guard,
        data: Data,
        clients: ClientsConfig,
        server: Server = HONEST,
        **how: Any,
    ) -> None:
        self.clients, self.server = clients, server
        self.images = deal_clients(data, clients)
        super().__init__(model, guard, data, **how)
        if server.steers:
            self.first_candidate = self.config.epochs - 1
        self.state.config["clients"] = dataclasses.asdict(clients) | {"sha256": fingerprint(self.images)}
        self.tally: dict[int, dict[str, float]] = {}

    def equip(self) -> Sequence[Client]:
        """A client for every part of the images, all of them in front of one cloud half with one optimiser.

        Each has an encoder and a guard of its own, or guards with the weights of all where these are shared.
        """
        recipe = recipe_for(self.config)
        self.optimiser = recipe.optimiser(list(self.model.decoder.parameters()), [])
        self.optimisers = {"cloud.": self.optimiser}
        shared = self.clients.sync == "shared"
        made = []
        for number, images in enumerate(self.images):
            encoder = self.model.encoder if shared else copy.deepcopy(self.model.encoder)
            guard = copy.deepcopy(self.guard, {id(p): p for p in own_parameters(self.guard)} if shared else {})
            owner = "device." if shared else f"client.{number}."
            if owner not in self.optimisers:
                self.optimisers[owner] = recipe.optimiser(list(encoder.parameters()), own_parameters(guard))
            half = Split(encoder, self.model.decoder, latent_shape=self.model.latent_shape, classes=self.model.classes)
            both = [self.optimisers[owner], self.optimiser]
            seed = self.seed + 1000 * number
            made.append(Client(half, guard, images, both, self.config, seed, server=self.server))
        return made

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
        row = super().train(number)
        for client, figures in self.tally.items():
            row |= {f"client_{client}/{name}": figures[name] for name in ("seen", "skipped")}
            if figures["seen"]:
                row[f"client_{client}/loss"] = figures["loss"] / figures["seen"]
                row[f"client_{client}/accuracy"] = figures["correct"] / figures["seen"]
            row |= {f"client_{client}/{name}": gap for name, gap in self.learners[client].close_gap().items()}
        return row

    def review(self, epochs_done: int) -> None:
        super().review(epochs_done)
        review_images(self.model, self.guard, self.data.validation, self.config, epochs_done, self.team)

    def packed(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors, plain = super().packed()
        for number, client in enumerate(self.learners):
            tensors |= {f"client.{number}.guard.{name}": tensor for name, tensor in kept(client.guard).items()}
        return tensors, plain

    def restore(self, tensors: dict[str, Tensor]) -> None:
        super().restore(tensors)
        restore_guards([client.guard for client in self.learners], self.guard, tensors)
        for client in self.learners:
            copy_into(client.model.encoder.state_dict(), self.model.encoder.state_dict())
