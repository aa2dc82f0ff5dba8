"""Who learns from some images: a network, its guard, their optimisers, and the step they take together."""

import math
from collections.abc import Iterator, Sequence

import torch

from attcem.config import TrainConfig
from attcem.data.loader import Augment, Loader
from attcem.defences import Guard
from attcem.device import find_device, number_format
from attcem.models import Split
from attcem.train.diagnostics import Diagnostics
from attcem.train.gradients import StepReport, one_pass
from attcem.train.schedule import ramp_up, recipe_for
from attcem.train.server import HONEST, Server
from attcem.train.team import ALONE, Team
from attcem.types import Images


class Learner:
    """Who learns: a network and its guard, images of their own, and the optimisers that move them."""

    server: Server = HONEST

    def __init__(
        self,
        model: Split,
        guard: Guard,
        images: Images,
        optimisers: Sequence[torch.optim.Optimizer],
        config: TrainConfig,
        seed: int,
        team: Team = ALONE,
    ) -> None:
        if min(len(images), config.batch) < team.size:
            raise ValueError(
                f"a batch of {min(len(images), config.batch)} images cannot be shared by {team.size} processes: raise "
                "train.batch, or start fewer of them"
            )
        self.model, self.guard, self.images, self.config, self.team = model, guard, images, config, team
        self.optimisers = list(optimisers)
        self.recipe = recipe_for(config)
        device = find_device(config.device)
        self.dtype, self.autocast = number_format(config.precision, device)
        self.loader = Loader(images, config.batch, device=device, augment=Augment(config.crop, config.flip), seed=seed)
        self.buffers = list(model.buffers())
        self.diagnostics = Diagnostics()

    def steps(self, number: int) -> Iterator[dict[str, float]]:
        for step, (x, y) in enumerate(self.loader.epoch(number)):
            yield self.step(x, y, number + step / len(self.loader), watched=Diagnostics.due(step))

    def step(self, x: torch.Tensor, y: torch.Tensor, epoch: float, *, watched: bool) -> dict[str, float]:
        """One batch: gradients, then a step, unless anything is not finite. `epoch` counts parts of epochs, too."""
        rate = self.recipe.rate(epoch / self.config.epochs)
        groups = [group for optimiser in self.optimisers for group in optimiser.param_groups]
        for group in groups:
            group["lr"] = rate
        w_lr = self.recipe.penalty_weight(rate, self.config.start_from is not None)
        before = [buffer.clone() for buffer in self.buffers]
        for optimiser in self.optimisers:
            optimiser.zero_grad(set_to_none=True)
        with self.autocast:
            report = one_pass(
                self.model,
                self.guard,
                x.to(self.dtype),
                y,
                lambda link: link.lam * w_lr * ramp_up(epoch - link.warmup, self.config.ramp),
                self.team,
                progress=epoch / self.config.epochs,
                watched=watched,
                label_smoothing=self.config.label_smoothing,
                server=self.server,
            )
        # a defence's own parameters are clipped by themselves: they must not slow the network down.
        norms = [torch.nn.utils.clip_grad_norm_(group["params"], self.recipe.clip) for group in groups]
        if not all(math.isfinite(value) for value in (report.loss, *norms)):
            for buffer, old in zip(self.buffers, before, strict=True):
                buffer.copy_(old)
            return {"skipped": 1, "lost_penalties": report.lost_penalties}
        for optimiser in self.optimisers:
            optimiser.step()
        self.learned(report)
        return {
            "loss": float(report.loss) * len(y),
            "correct": int(report.correct),
            "seen": len(y),
            "penalty": sum(report.penalties.values()),
            "lost_penalties": report.lost_penalties,
            "in_penalty": report.penalty_seconds,
        }

    def learned(self, report: StepReport) -> None:
        """What follows a step."""
        self.guard.observe(report.batch)
        self.diagnostics.take(report.readings)
