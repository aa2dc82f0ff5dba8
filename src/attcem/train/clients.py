"""Split federated training, as it is called: several clients, each with images of its own, and one cloud half."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from attcem.config import ClientsConfig, TrainConfig, with_options
from attcem.data import Data
from attcem.defences import Defence, Guard
from attcem.models import Split
from attcem.train.agreement import check_arguments, check_network
from attcem.train.checkpoint import State
from attcem.train.distributed import team_size
from attcem.train.federated import Federated
from attcem.train.loop import lock_folder


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
    and `resume` are those of `fit`.
    """
    refuse_processes()
    config = with_options(config or TrainConfig(), options)
    guard = check_arguments(model, guard, data)
    check_network(model, data, data.private)
    with lock_folder(out), torch.random.fork_rng():
        torch.manual_seed(seed)
        run = Federated(
            model,
            guard,
            data,
            clients,
            config=config,
            seed=seed,
            out=None if out is None else Path(out),
            progress=progress,
        )
        run.start(resume)
        while run.state.epoch < config.epochs:
            run.epoch()
        return run.finish(), [client.guard.eval() for client in run.learners]
