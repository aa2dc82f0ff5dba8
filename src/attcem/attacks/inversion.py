"""An inverter in training, on what the device releases for public images."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attcem.attacks.base import Reconstruction
from attcem.attacks.class_aware import ClassAware, class_residuals
from attcem.attacks.feedback import Feedback
from attcem.attacks.inverter import Grid, Inverter
from attcem.attacks.pairs import Pairs, hold_out, owned, unchanging
from attcem.data.loader import Augment
from attcem.maths.similarity import structural_similarity
from attcem.naming import look_up
from attcem.progress import bar
from attcem.types import Images, Released, View


def squared(guess: Tensor, x: Tensor) -> Tensor:
    """Mean squared error."""
    return F.mse_loss(guess, x)


def squared_and_structural(guess: Tensor, x: Tensor) -> Tensor:
    """MSE + (1 − SSIM) / 20: about equal parts where decoders end."""
    return F.mse_loss(guess, x) + (1 - structural_similarity(guess, x).mean()) / 20


STUCK = 0.15
"""A first cycle that lowers the linear guess's validation loss by a smaller share than this may be stuck."""

ANSWERS = 4
"""Queries with the same guess, averaged, where the device does not always send the same."""

LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"mse": squared, "mse_ssim": squared_and_structural}


@dataclass(frozen=True)
class Settings:
    """What the network is like, and what it learns from."""

    channels: int
    blocks: int
    attention: bool = False
    """Cells also look at each other, half-way through the blocks, or behind those of its start."""
    loss: str = "mse"
    class_aware: bool = False
    """Reads the cloud's logits, and learns what to add to the public mean of the classes they name."""
    feedback: bool = False
    """Sends the guess of its start to the device, and reads what the answer differs by."""
    repeats: int = 1
    """The device has sent every image so many times; the attacker averages."""
    pairs: int | None = None
    """Owns only so many public images."""
    shifted: bool = False
    """Owns public images of the first half of the classes only."""
    lr: float = 2e-3
    """A quarter of it is taken where this one hardly learns, and that one does."""
    batch: int = 64


class Inversion:
    """An inverter in training: its data, its optimiser, its best weights so far."""

    def __init__(self, settings: Settings, view: View, seed: int, before: Inversion | None = None) -> None:
        if view.oracle is None:
            raise ValueError(
                "a decoder learns from queries: choose a threat model that grants them, query or white_box"
            )
        self.settings, self.view, self.device = settings, view, view.targets.device
        self.loss, self.plateaued = look_up("loss", settings.loss, LOSSES), False
        self.gain: float | None = None  # one cycle cannot tell what another would gain
        own, held_out = hold_out(owned(view.public, settings.pairs, settings.shifted), seed)
        known = ("pairs", settings.pairs, settings.shifted, seed)
        if known not in view.notes:
            view.notes[known] = Pairs(
                view.oracle, own, augment=Augment(crop=2, flip=True), seed=seed, device=self.device
            )
        self.pairs: Pairs = view.notes[known]
        self.held_out = held_out.pixels().to(self.device)
        self.held_recording = view.oracle.record(self.held_out.split(256))
        self.network = self.solved(own) if before is None else self.grown(before, own)
        self.start(settings.lr if before is None else before.lr)

    @property
    def doubts(self) -> list[str]:
        """What whoever builds on this inverter should say of it."""
        return [] if self.plateaued else ["cut short while still improving; a longer suite lets it go on"]

    @property
    def learnt(self) -> dict[str, Tensor]:
        """The weights, and where training stands."""
        stands = {"lr": torch.tensor(self.lr, dtype=torch.float64), "epochs": torch.tensor(self.epochs)}
        return stands | {f"network.{name}": tensor for name, tensor in self.weights.items()}

    def restored(self, found: Reconstruction) -> Inversion:
        """As it was when it found that."""
        self.resume(found.learnt, found.curve)
        self.gain, self.plateaued = found.gain, not found.warnings
        return self

    def resume(self, learnt: dict[str, Tensor], curve: list[float]) -> None:
        """Stand where training stood, with a new optimiser."""
        self.start(learnt["lr"].item())
        self.epochs = int(learnt["epochs"])
        weights = {name.removeprefix("network."): tensor for name, tensor in learnt.items() if "network." in name}
        self.network.load_state_dict(weights)
        self.curve, self.best, self.weights = curve, min(curve), snapshot(self.network)

    def start(self, lr: float) -> None:
        """With a new optimiser, from the weights as they are."""
        solved = list(self.network.solved())
        learns = [p for p in self.network.parameters() if p.requires_grad]
        rest = [p for p in learns if all(p is not known for known in solved)]
        groups = [{"params": rest, "share": 1.0}, {"params": solved, "share": 0.1}]
        self.lr, self.optimiser = lr, torch.optim.Adam(groups, lr=lr, betas=(0.9, 0.99))
        self.epochs = self.steps = 0
        self.best, self.weights = math.inf, snapshot(self.network)
        self.curve = [self.validate()]

    def first_cycle(self, steps: int, title: str, progress: bool) -> float:
        """A cycle from the linear guess; where it hardly gains on that, another at a quarter of the rate.

        Behind strong defences a rate that is too high leaves a large decoder at its linear start, where it looks as if
        it had plateaued. The lower one is kept if it gains more than twice as much: where both learn, the higher one
        ends lower.
        """
        linear = snapshot(self.network)
        reached = self.run_cycle(steps, title, progress)
        gained, learnt, curve = self.curve[0] - self.best, self.learnt, self.curve
        if gained >= STUCK * curve[0]:
            return reached
        self.network.load_state_dict(linear)
        self.start(self.lr / 4)
        slower = self.run_cycle(steps, f"{title} at a quarter of the rate", progress)
        if self.curve[0] - self.best > 2 * gained:
            return slower
        self.resume(learnt, curve)
        self.steps = steps
        return reached

    def solved(self, own: Images) -> Inverter | ClassAware:
        """A new inverter that starts as the best linear guess."""
        released, x = self.first_pairs(own)
        mean, sizes = own.mean().to(self.device), (self.settings.channels, self.settings.blocks)
        inverter = Inverter(released, mean, *sizes, attention=self.settings.attention).to(self.device)
        network = self.aware(inverter, own) if self.settings.class_aware else inverter
        solve(network, released, x)
        return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def grown(self, before: Inversion, own: Images) -> Inverter | ClassAware:
        """A network that guesses what a trained one does, deepened, or told what the cloud says of the class."""
        network, mine, its = copy.deepcopy(before.network), self.settings, before.settings
        network.deepen(mine.blocks - its.blocks, attention=mine.attention and not its.attention)
        if mine.feedback and isinstance(network.grid, Grid):
            network.read(self.asking(network.grid, copy.deepcopy(before.network), own))
        if mine.class_aware and isinstance(network, Inverter):
            network = self.aware(network, own)
            solve(network, *self.first_pairs(own))
        return network.to(self.device, memory_format=torch.channels_last)  # type: ignore[call-overload]

    def asking(self, grid: Grid, guess: nn.Module, own: Images) -> Feedback:
        """That grid, and what the device answers to these guesses."""
        oracle, answers = self.pairs.oracle, 1 if unchanging(self.view) else ANSWERS
        latents, images = self.first_pairs(own)
        return Feedback(grid, guess, lambda x: oracle(x, answers), latents, *images.shape[-2:])

    def first_pairs(self, own: Images) -> tuple[Released, Float[Tensor, "n c h w"]]:
        """What a linear guess is solved on."""
        return next(iter(self.pairs.epoch(0, min(2048, len(own)), self.settings.repeats)))

    def aware(self, inverter: Inverter, own: Images) -> ClassAware:
        """The same inverter beside what the cloud says of the class."""
        cloud = self.view.cloud
        if cloud is None:
            raise ValueError("a class-aware decoder reads the cloud's logits: give the view its cloud")
        classes = cloud(self.view.targets[:1]).shape[1]
        return ClassAware(inverter, lambda z: cloud(z), class_residuals(own, classes).to(self.device))

    def guess(self, released: Released) -> Float[Tensor, "b c h w"]:
        """The guessed images, not clamped."""
        return self.network(released)

    def run_cycle(self, steps: int, title: str, progress: bool) -> float:
        """Rise to the full learning rate, fall to zero, and return the validation loss there."""
        done = 0
        self.steps += steps
        with bar(title, steps, unit_size=self.settings.batch, shown=progress) as show:
            while done < steps:
                for released, x in self.pairs.epoch(self.epochs, self.settings.batch, self.settings.repeats):
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

    def step(self, released: Released, x: Float[Tensor, "b c h w"], rate: float) -> None:
        """One step on what the device releases for these images, right now."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate * group["share"]
        loss = self.loss(self.guess(released), x)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimiser.step()

    @torch.no_grad()
    def validate(self) -> float:
        """Mean loss on public images that the inverter was not trained on; the best weights are kept."""
        total = 0.0
        for index in torch.arange(len(self.held_out), device=self.device).split(256):
            guess = self.guess(self.held_recording(index, self.settings.repeats)).clamp(0, 1)
            total += self.loss(guess, self.held_out[index]).item() * len(index)
        error = total / len(self.held_out)
        if error < self.best:
            self.best, self.weights = error, snapshot(self.network)
        return error

    @torch.no_grad()
    def invert(self, released: Released) -> Float[Tensor, "n c h w"]:
        """The guessed images, in [0,1]."""
        return torch.cat([self.guess(part) for part in released.split(256)]).clamp(0, 1)


def snapshot(network: nn.Module) -> dict[str, Tensor]:
    """A copy of the weights."""
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


def solve(network: Inverter | ClassAware, released: Released, x: Float[Tensor, "n c h w"]) -> None:
    """Make its linear part the best guess of these images, a few at a time."""
    network.solve_linear(zip(released.split(64), x.split(64), strict=True))
