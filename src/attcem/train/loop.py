"""The training loop: one released graph, one backward pass through the encoder, best epoch by validation."""

from __future__ import annotations

import copy
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch

from attcem.config import TrainConfig, with_options
from attcem.data import Data
from attcem.data.clients import fingerprint
from attcem.defences import Defence, Guard, Surrogate, describe, own_parameters
from attcem.device import find_device, number_format, peak_megabytes
from attcem.models import Split
from attcem.progress import bar, say
from attcem.train.agreement import check_arguments, check_network
from attcem.train.checkpoint import (
    STATE,
    State,
    best_of,
    read_tensors,
    refuse_link,
    resumed_state,
    save_state,
    write_state,
)
from attcem.train.diagnostics import Diagnostics
from attcem.train.distributed import join
from attcem.train.history import History, cost, in_words
from attcem.train.honesty import surrogate_only
from attcem.train.learner import Learner
from attcem.train.packing import pack, unpack_modules, unpack_optimiser
from attcem.train.prediction import clean_latents, evaluate
from attcem.train.schedule import first_candidate, recipe_for
from attcem.train.team import ALONE, Team
from attcem.types import Images
from attcem.workplace import working_in

FROZEN = 32
"""Batches of latents on which a surrogate is tested for honesty."""


def fit(
    model: Split,
    guard: Guard | Defence,
    data: Data,
    config: TrainConfig | None = None,
    *,
    seed: int = 0,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = True,
    **options: Any,
) -> State:
    """Train a split network under a defence; the model ends with the weights of its best validated epoch.

        set up the defence for this latent
        before a penalty starts: see how far its own parameters alone could lower it
        for each epoch:
            for each augmented batch of private images:
                z = encoder(x); released = guard.release(z); loss = cross-entropy(decoder(released), y)
                grad = grad(loss) + λ · w_lr · grad(penalty), mixed at the latent
                step, unless something is not finite: then skip, count, and undo the batch's running statistics
                guard.observe(batch)
            validate on released latents; let the defence review all private images; write a checkpoint
        load the best epoch

    `options` are fields of TrainConfig. With `out`, every epoch is kept there and `resume=True` goes on after the
    last one, ending in the same weights as if never interrupted. Processes that torchrun has started share every batch
    and end in the weights that one of them would: `batch` is that of all together.
    """
    config, guard = with_options(config or TrainConfig(), options), check_arguments(model, guard, data)
    check_network(model, data, data.private)
    team = join(config.device)
    with lock_folder(out, team), torch.random.fork_rng(), team.whole_batch(model):
        torch.manual_seed(seed)
        run = Training(model, guard, data, config, seed, None if out is None else Path(out), progress, team)
        run.start(resume)
        while run.state.epoch < config.epochs:
            run.epoch()
        return run.finish()


def lock_folder(out: str | Path | None, team: Team = ALONE) -> AbstractContextManager[None]:
    """While it lasts, no other process trains in this folder; of a team's processes, the first one sees to that."""
    return nullcontext() if out is None or not team.first else working_in(Path(out))


class Training:
    """The state of one call of `fit`, with one method per part of its pseudocode."""

    def __init__(
        self,
        model: Split,
        guard: Guard,
        data: Data,
        config: TrainConfig,
        seed: int,
        out: Path | None,
        progress: bool,
        team: Team = ALONE,
    ) -> None:
        self.device = find_device(config.device)
        dtype, _ = number_format(config.precision, self.device)
        self.first_candidate = first_candidate(guard, config.epochs)
        guard.setup(latent=model.latent_shape, classes=model.classes, sigma=guard.sigma)
        self.model = model.to(self.device, dtype, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.guard = guard.to(self.device, dtype)
        self.modules = {"model": self.model, "guard": self.guard}
        self.data, self.config, self.seed, self.out = data, config, seed, out
        self.team, self.shown = team, progress and team.first
        self.state = State(
            dataclasses.asdict(config), model.spec, seed, draw=data.draw.get("sha256", ""), defence=describe(guard)
        )
        self.best: dict[str, torch.Tensor] = {}
        self.untrained = {
            name: copy.deepcopy(link) for name, link in guard.named.items() if isinstance(link, Surrogate)
        }
        self.history = History(out if team.first else None, tensorboard=config.tensorboard and team.first)
        self.learners: Sequence[Learner] = self.equip()

    def equip(self) -> Sequence[Learner]:
        """One learner, with all private images and one optimiser for everything."""
        self.optimiser = recipe_for(self.config).optimiser(list(self.model.parameters()), own_parameters(self.guard))
        return [Learner(self.model, self.guard, self.data.private, [self.optimiser], self.config, self.seed, self.team)]

    @property
    def checkpoint(self) -> Path | None:
        """Where checkpoints go, if anywhere."""
        return None if self.out is None else self.out / "checkpoint"

    def start(self, resume: bool) -> None:
        """Begin at epoch 0, from other weights, or where a checkpoint stands."""
        self.team.check(self.facts)
        if self.checkpoint is not None:
            refuse_link(self.checkpoint)
        if self.config.start_from is not None:
            unpack_modules({"model": self.model}, best_of(self.config.start_from))
        fresh = self.checkpoint is None or not (self.checkpoint / STATE).exists()
        self.attach(self.borrow_encoder if fresh else None)
        if self.checkpoint is None or fresh:
            return
        if not resume:
            raise ValueError(f"{self.out} already holds a run: resume it, or choose another folder")
        self.state = state = resumed_state(self.checkpoint, self.state, tidy=self.team.first)
        self.history.rows = state.history
        self.best = read_tensors(self.checkpoint, state, "best") if "best" in state.files else {}
        if state.finished:
            return
        tensors = read_tensors(self.checkpoint, state, "last")
        self.restore(tensors)
        self.restore_optimisers(tensors)
        say(f"resuming {self.out} after epoch {state.epoch} of {self.config.epochs}", shown=self.shown)

    def facts(self) -> dict[str, Any]:
        """What all processes of a team must have in common."""
        images = fingerprint([self.data.private, self.data.validation])
        given = {"seed": self.seed, "data": images, "network": self.model, "defence": describe(self.guard)}
        return given | vars(self.config)

    def attach(self, borrow: Callable[[str], None] | None) -> None:
        """Let the guard meet the encoder."""
        self.guard.attach(self.model.encoder, borrow)

    def packed(self) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """All tensors that a checkpoint needs, and the optimiser's plain numbers."""
        return pack(self.modules, self.optimiser)

    def restore(self, tensors: dict[str, torch.Tensor]) -> None:
        """Load what was learned."""
        unpack_modules(self.modules, tensors)

    def restore_optimisers(self, tensors: dict[str, torch.Tensor]) -> None:
        """Load how it was being learned."""
        unpack_optimiser(self.optimiser, tensors, self.state.optimiser)

    def borrow_encoder(self, folder: str) -> None:
        """Begin with the encoder of another run."""
        unpack_modules({"model.encoder": self.model.encoder}, best_of(folder))

    def epoch(self) -> None:
        """Train one epoch, validate, and write a checkpoint."""
        number = self.state.epoch
        self.team.copy_first(number, self.packed()[0])
        torch.manual_seed(self.seed * 1_000_003 + number)  # noise depends on the epoch only, so resuming repeats it
        self.check_honesty(number)
        row = self.train(number)
        started = time.perf_counter()
        self.review(number + 1)
        row["seconds"] += time.perf_counter() - started
        row["val_loss"], row["val_accuracy"] = evaluate(self.model, self.guard, self.data.validation, team=self.team)
        self.state.epoch = number + 1
        better = number >= self.first_candidate and row["val_accuracy"] > self.state.best_accuracy
        tensors, self.state.optimiser = self.packed()
        if better:
            self.state.best_epoch, self.state.best_accuracy = number + 1, row["val_accuracy"]
            self.best = {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}
        self.history.add(row)
        self.state.history = self.history.rows
        if self.checkpoint is not None and self.team.first:
            save_state(self.checkpoint, self.state, tensors, best=better)
        say(in_words(row, self.config.epochs), shown=self.shown)

    def train(self, number: int) -> dict[str, float]:
        """One pass over the private images."""
        for learner in self.learners:
            learner.model.train(), learner.guard.train()
        steps = self.length(number)
        total = {
            "loss": 0.0,
            "correct": 0,
            "seen": 0,
            "penalty": 0.0,
            "skipped": 0,
            "lost_penalties": 0,
            "in_penalty": 0.0,
        }
        started = time.perf_counter()
        title = f"epoch {number + 1}/{self.config.epochs}"
        with bar(title, steps, unit_size=self.config.batch, shown=self.shown) as show:
            for step, figures in enumerate(self.steps(number)):
                for name, value in figures.items():
                    total[name] += value
                seen = max(1, total["seen"])
                show(step + 1, loss=total["loss"] / seen, accuracy=total["correct"] / seen)
        if total["skipped"] == steps:
            raise ValueError(
                f"every batch of epoch {number + 1} gave a loss or gradient that is not finite: lower train.lr, use "
                "precision float32, or check the defence's penalty; the last checkpoint is intact"
            )
        seconds = time.perf_counter() - started
        seen, taken = total["seen"], steps - total["skipped"]
        figures, vectors = self.readings()
        self.state.diagnostics.append(vectors)
        return {
            "epoch": number + 1,
            "lr": self.optimiser.param_groups[0]["lr"],
            "loss": total["loss"] / seen,
            "accuracy": total["correct"] / seen,
            "penalty": total["penalty"] / taken,
            "skipped": total["skipped"],
            "lost_penalties": total["lost_penalties"],
            "penalty_share": total["in_penalty"] / seconds,
            "seconds": seconds,
            "images_per_second": seen / seconds,
            **figures,
        }

    def length(self, number: int) -> int:
        """How many steps an epoch has."""
        return len(self.learners[0].loader)

    def steps(self, number: int) -> Iterator[dict[str, float]]:
        """Take the steps of an epoch, one at a time, and tell what each of them saw."""
        (learner,) = self.learners
        for step, (x, y) in enumerate(learner.loader.epoch(number)):
            yield learner.step(x, y, number + step / self.length(number), watched=Diagnostics.due(step))

    def readings(self) -> tuple[dict[str, float], dict[str, list[float]]]:
        """What the defence saw in this epoch."""
        return self.learners[0].diagnostics.close()

    def review(self, epochs_done: int) -> None:
        """Show all private images to the defences that ask for it and are about to be used."""
        for learner in self.learners:
            self.show(learner.model, learner.guard, learner.images, epochs_done)

    def show(self, model: Split, guard: Guard, images: Images, epochs_done: int) -> None:
        """Let a guard review some images, where it is due."""
        for link in guard.links:
            if type(link).review is not Defence.review and link.warmup <= epochs_done < self.config.epochs:
                link.review(clean_latents(model, images, self.config.batch, self.team))

    def check_honesty(self, epoch: int) -> None:
        """Before a penalty first shapes the encoder: how far does it fall when only its own parameters learn?"""
        learner = max(self.learners, key=lambda learner: len(learner.images))
        for name, untrained in self.untrained.items():
            if untrained.penalises and untrained.warmup == epoch:
                some = learner.images[: FROZEN * self.config.batch]
                latents = list(clean_latents(learner.model, some, self.config.batch, self.team))
                with torch.random.fork_rng():
                    self.state.surrogate_only[name] = surrogate_only(untrained, latents)

    def finish(self) -> State:
        """Load the best epoch and note what training cost."""
        self.restore(self.best)
        if not self.state.finished:
            rows = self.state.history
            steps = sum(self.length(number) for number in range(len(rows)))
            self.state.finished = True
            self.state.cost = cost(rows, steps) | {"peak_mb": peak_megabytes(self.device)}
            if self.checkpoint is not None and self.team.first:
                files = {which: entry for which, entry in self.state.files.items() if which != "last"}
                write_state(self.checkpoint, self.state, files)
        self.model.eval(), self.guard.eval()
        self.model.record = self.state.record
        self.history.close()
        return self.state
