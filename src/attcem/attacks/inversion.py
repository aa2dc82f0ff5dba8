"""An inverter in training, on what the device releases for public images."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attcem.attacks.base import Pictures, Reconstruction, update
from attcem.attacks.inverter import Inverter
from attcem.attacks.pairs import hold_out, pairs_of
from attcem.maths.similarity import structural_similarity
from attcem.naming import look_up
from attcem.progress import bar
from attcem.types import Released, View

STUCK = 0.15  # a first cycle that lowers the linear guess's validation loss by a smaller share than this may be stuck


def squared_and_structural(guess: Tensor, x: Tensor) -> Tensor:
    """MSE + (1 − SSIM) / 20: about equal parts where decoders end."""
    return F.mse_loss(guess, x) + (1 - structural_similarity(guess, x).mean()) / 20


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"mse": F.mse_loss, "mse_ssim": squared_and_structural}


@dataclass(frozen=True, kw_only=True)
class Recipe(ABC):
    """What network is trained, and how."""

    loss: str = "mse"
    lr: float = 2e-3  # a quarter of it is taken where this one hardly learns, and that one does
    batch: int = 64

    @abstractmethod
    def network(self, training: Inversion, before: Inverter | None) -> Inverter:
        """A new network, or what a copy of a trained one grows into: the same guess, and room to learn more."""


class Inversion:
    """An inverter in training: its data, its optimiser, its best weights so far."""

    def __init__(self, recipe: Recipe, view: View, seed: int, before: Inversion | None = None) -> None:
        if view.oracle is None:
            raise ValueError(
                "a decoder learns from queries: choose a threat model that grants them, query or white_box"
            )
        self.view, self.device, self.batch = view, view.targets.device, recipe.batch
        self.loss, self.plateaued = look_up("loss", recipe.loss, LOSSES), False
        self.gain: float | None = None  # one cycle cannot tell what another would gain
        self.own, held_out = hold_out(view.public, seed)
        self.pairs = pairs_of(view, self.own, seed)
        self.held_out = held_out.pixels().to(self.device)
        self.held_recording = view.oracle.record(self.held_out.split(256))
        network = recipe.network(self, copy.deepcopy(before.network) if before else None)
        self.network: Inverter = network.to(self.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.restart(before.lr if before else recipe.lr)

    @property
    def flags(self) -> list[str]:
        return [] if self.plateaued else ["stopped before it finished; use a longer suite"]

    @property
    def state(self) -> dict[str, Tensor]:
        stands = {"lr": torch.tensor(self.lr, dtype=torch.float64), "epochs": torch.tensor(self.epochs)}
        return stands | {f"network.{name}": tensor for name, tensor in self.weights.items()}

    def restored(self, found: Reconstruction) -> Inversion:
        self.resume(found.state, found.curve)
        self.gain, self.plateaued = found.gain, not found.flags
        return self

    def resume(self, state: dict[str, Tensor], curve: list[float]) -> None:
        """Stand where training stood, with a new optimiser."""
        self.restart(state["lr"].item())
        self.epochs = int(state["epochs"])
        weights = {name.removeprefix("network."): tensor for name, tensor in state.items() if "network." in name}
        if not any(name.startswith("linear.") for name in weights):
            self.network.linear = None
        self.network.load_state_dict(weights)
        self.curve, self.best, self.weights = curve, min(curve), snapshot(self.network)

    def restart(self, lr: float) -> None:
        """With a new optimiser, from the weights as they are."""
        solved = self.network.solved()
        rest = [p for p in self.network.parameters() if p.requires_grad and all(p is not known for known in solved)]
        groups = [{"params": rest, "share": 1.0}, {"params": solved, "share": 0.1}]
        self.lr, self.optimiser = lr, torch.optim.Adam(groups, lr=lr, betas=(0.9, 0.99), fused=True)
        self.epochs = self.steps = 0
        self.best, self.weights = math.inf, snapshot(self.network)
        self.curve = [self.validate()]

    def first_cycle(self, steps: int, title: str, progress: bool) -> float:
        """A cycle from the linear guess; where it hardly gains on that, another at a quarter of the rate.

        Where cells have no places, a linear guess beside what they learn to show keeps the network from learning: there
        the first cycle is run without it, and repeated with it only if it ends behind the guess.

        Behind strong defences a rate that is too high leaves a large decoder at its linear start, where it looks as if
        it had plateaued. The lower one is kept if it gains more than twice as much: where both learn, the higher one
        ends lower.
        """
        if not self.network.grid.located:
            solved, guessed = copy.deepcopy(self.network), self.best
            self.network.linear = None
            self.restart(self.lr)
            reached = self.run_cycle(steps, title, progress)
            if self.best <= guessed:
                return reached
            self.network = solved
            self.restart(self.lr)
        linear = snapshot(self.network)
        reached = self.run_cycle(steps, title, progress)
        gained, state, curve = self.curve[0] - self.best, self.state, self.curve
        if gained >= STUCK * curve[0]:
            return reached
        self.network.load_state_dict(linear)
        self.restart(self.lr / 4)
        slower = self.run_cycle(steps, f"{title} at a quarter of the rate", progress)
        if self.curve[0] - self.best > 2 * gained:
            return slower
        self.resume(state, curve)
        self.steps = steps
        return reached

    def first_pairs(self) -> tuple[Released, Pictures]:
        """What a linear guess is solved on."""
        return next(iter(self.pairs.epoch(0, min(2048, len(self.own)))))

    def run_cycle(self, steps: int, title: str, progress: bool) -> float:
        """Rise to the full learning rate, fall to zero, and return the validation loss there."""
        self.steps, done = self.steps + steps, 0
        with bar(title, steps, unit_size=self.batch, shown=progress) as show:
            while done < steps:
                for released, x in self.pairs.epoch(self.epochs, self.batch):
                    share = done / steps
                    rate = self.lr * min(1.0, 20 * share + 0.05) * (1 + math.cos(math.pi * share)) / 2
                    self.step(released, x, rate)
                    done += 1
                    if done == steps or done % max(1, steps // 4) == 0:
                        self.curve.append(self.validate())
                    show(done, loss=self.curve[-1])
                    if done == steps:
                        break
                self.epochs += 1
        self.network.load_state_dict(self.weights)
        return self.curve[-1]

    def rest(self) -> None:
        """After the last cycle: keep the network alone, without gradients, Adam's moments and a second copy of it."""
        self.optimiser.zero_grad()
        self.optimiser.state.clear()
        self.weights = self.network.state_dict()

    def step(self, released: Released, x: Pictures, rate: float) -> None:
        for group in self.optimiser.param_groups:
            group["lr"] = rate * group["share"]
        update(self.optimiser, self.loss(self.network(released), x), clipped=self.network.parameters())

    @torch.no_grad()
    def validate(self) -> float:
        """Mean loss on public images that the inverter was not trained on; the best weights are kept."""
        total = 0.0
        for index in torch.arange(len(self.held_out), device=self.device).split(256):
            guess = self.network(self.held_recording(index)).clamp(0, 1)
            total += self.loss(guess, self.held_out[index]).item() * len(index)
        error = total / len(self.held_out)
        if error < self.best:
            self.best, self.weights = error, snapshot(self.network)
        return error

    @torch.no_grad()
    def invert(self, released: Released) -> Pictures:
        return torch.cat([self.network(part) for part in released.split(256)]).clamp(0, 1)


def snapshot(network: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}
