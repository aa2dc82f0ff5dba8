"""The training loop: one released graph, one backward pass through the encoder, best epoch by validation."""

import copy
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
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
from attcem.train.checkpoint import State, best_of, read_tensors, resumed_state, save_state, write_state
from attcem.train.diagnostics import History, close_together, cost, epoch_row, in_words
from attcem.train.distributed import join
from attcem.train.honesty import falls_alone
from attcem.train.learner import Learner
from attcem.train.packing import pack, unpack_modules, unpack_optimisers
from attcem.train.prediction import evaluate, review_images
from attcem.train.schedule import first_candidate, recipe_for
from attcem.train.team import ALONE, Team


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
                z = encoder(x); released = guard.release(z); loss = cross-entropy(decoder(released), smoothed y)
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
    with team.lock_folder(out), torch.random.fork_rng(), team.whole_batch(model):
        torch.manual_seed(seed)
        return Training(model, guard, data, config, seed, out, progress, team).run(resume)


class Training:
    """The state of one call of `fit`, with one method per part of its pseudocode."""

    def __init__(
        self,
        model: Split,
        guard: Guard,
        data: Data,
        config: TrainConfig,
        seed: int,
        out: str | Path | None,
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
        self.data, self.config, self.seed, self.out = data, config, seed, None if out is None else Path(out)
        self.checkpoint = None if self.out is None else self.out / "checkpoint"
        self.team, self.shown = team, progress and team.first
        self.state = State(
            config.to_dict(), model.spec, seed, draw=data.draw.get("sha256", ""), defence=describe(guard)
        )
        self.best: dict[str, torch.Tensor] = {}
        self.untrained = {
            name: copy.deepcopy(link) for name, link in guard.named.items() if isinstance(link, Surrogate)
        }
        self.history = History(self.out if team.first else None, tensorboard=config.tensorboard and team.first)
        self.learners: Sequence[Learner] = self.equip()

    def equip(self) -> Sequence[Learner]:
        """One learner, with all private images and one optimiser for everything."""
        self.optimiser = recipe_for(self.config).optimiser(list(self.model.parameters()), own_parameters(self.guard))
        self.optimisers = {"": self.optimiser}
        return [Learner(self.model, self.guard, self.data.private, [self.optimiser], self.config, self.seed, self.team)]

    def run(self, resume: bool) -> State:
        self.start(resume)
        while self.state.epoch < self.config.epochs:
            self.epoch()
        return self.finish()

    def start(self, resume: bool) -> None:
        """Begin at epoch 0, from other weights, or where a checkpoint stands."""
        self.team.check(self.facts)
        state = None
        if self.checkpoint is not None:
            state = resumed_state(self.checkpoint, self.state, resume=resume, tidy=self.team.first)
        if self.config.start_from is not None:
            unpack_modules({"model": self.model}, best_of(self.config.start_from))
        self.attach(self.borrow_encoder if state is None else None)
        if self.checkpoint is None or state is None:
            return
        self.state = state
        self.best = read_tensors(self.checkpoint, state, "best") if "best" in state.files else {}
        if state.finished:
            return
        tensors = read_tensors(self.checkpoint, state, "last")
        self.restore(tensors)
        unpack_optimisers(self.optimisers, tensors, state.optimiser)
        say(f"resuming {self.out} after epoch {state.epoch} of {self.config.epochs}", shown=self.shown)

    def facts(self) -> dict[str, Any]:
        """What all processes of a team must have in common."""
        images = fingerprint([self.data.private, self.data.validation])
        given = {"seed": self.seed, "data": images, "network": self.model, "defence": describe(self.guard)}
        return given | vars(self.config)

    def attach(self, borrow: Callable[[str], None] | None) -> None:
        self.guard.attach(self.model.encoder, borrow)

    def packed(self) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """All tensors that a checkpoint needs, and the optimisers' plain numbers."""
        return pack(self.modules, self.optimisers)

    def restore(self, tensors: dict[str, torch.Tensor]) -> None:
        unpack_modules(self.modules, tensors)

    def borrow_encoder(self, folder: str) -> None:
        unpack_modules({"model.encoder": self.model.encoder}, best_of(folder))

    def epoch(self) -> None:
        number = self.state.epoch
        self.team.copy_first(number, self.packed()[0])
        torch.manual_seed(self.seed * 1_000_003 + number)  # noise depends on the epoch only, so resuming repeats it
        largest = max(self.learners, key=lambda learner: len(learner.images))
        self.state.surrogate_only |= falls_alone(self.untrained, number, largest)
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
        self.state.history.append(row)
        self.history.write(self.state.history)
        if self.checkpoint is not None and self.team.first:
            save_state(self.checkpoint, self.state, tensors, best=better)
        say(in_words(row, self.config.epochs), shown=self.shown)

    def train(self, number: int) -> dict[str, float]:
        for learner in self.learners:
            learner.model.train(), learner.guard.train()
        steps = self.length(number)
        total: dict[str, float] = defaultdict(int)
        started = time.perf_counter()
        title = f"epoch {number + 1}/{self.config.epochs}"
        with bar(title, steps, unit_size=self.config.batch, shown=self.shown) as show:
            for step, figures in enumerate(self.steps(number), 1):
                for name, value in figures.items():
                    total[name] += value
                seen = max(1, total["seen"])
                show(step, loss=total["loss"] / seen, accuracy=total["correct"] / seen)
        row = epoch_row(number + 1, self.optimiser.param_groups[0]["lr"], total, steps, time.perf_counter() - started)
        readings, vectors = close_together(learner.diagnostics for learner in self.learners)
        self.state.diagnostics.append(vectors)
        return row | readings

    def length(self, number: int) -> int:
        return len(self.learners[0].loader)

    def steps(self, number: int) -> Iterator[dict[str, float]]:
        return self.learners[0].steps(number)

    def review(self, epochs_done: int) -> None:
        for learner in self.learners:
            review_images(learner.model, learner.guard, learner.images, self.config, epochs_done, self.team)

    def finish(self) -> State:
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
