"""Decoder attack: learn the inverse of the device from public images and its own queries."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from attcem.attacks.base import Attack, Reconstruction
from attcem.attacks.inverter import Inverter
from attcem.data.loader import Augment, Loader, in_order
from attcem.progress import bar, say
from attcem.types import Images, View


@dataclass(frozen=True)
class Decoder(Attack):
    """Trains an inverter on freshly released latents of public images until doubling the effort gains nothing.

    Training runs in cycles, each twice as long as the last and each ending at learning rate 0. When a cycle lowers the
    attacker's own validation loss by less than `tolerance`, the loss has plateaued. `doublings` caps the effort: if
    the last cycle allowed still gained more than that, the attack says so.
    """

    channels: int
    blocks: int
    lr: float = 2e-3
    batch: int = 64
    cycle: int = 600
    """Steps of the first cycle."""
    doublings: int = 5
    tolerance: float = 0.02

    @property
    def about(self) -> str:
        """One line for `attcem list`."""
        size = f"{self.blocks} residual blocks of {self.channels} channels"
        return f"Inverts latents with {size}, trained on fresh queries until doubling the effort gains nothing."

    def __call__(self, view: View, *, seed: int = 0, progress: bool = False) -> Reconstruction:
        """Train on public images, keep the best validated weights, invert the targets."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            training = Inversion(self, view, seed)
            title, before, plateaued = f"decoder {self.channels}×{self.blocks}", math.inf, False
            for doubling in range(self.doublings + 1):
                reached = training.run_cycle(self.cycle * 2**doubling, title, progress)
                say(f"{title}: own validation MSE {reached:.5f} after {training.steps:,} steps", shown=progress)
                plateaued = reached > (1 - self.tolerance) * before
                if plateaued:
                    break
                before = reached
            doubt = "cut short while still improving; a longer suite, such as standard, lets it finish"
            return Reconstruction(training.invert(view.targets), training.curve, [] if plateaued else [doubt])


class Inversion:
    """An inverter in training: its data, its optimiser, its best weights so far."""

    def __init__(self, settings: Decoder, view: View, seed: int) -> None:
        self.view, self.settings = view, settings
        self.device = view.targets.device
        own, self.held_out = hold_out(view.public, seed)
        self.loader = Loader(own, settings.batch, device=self.device, augment=Augment(crop=2, flip=True), seed=seed)
        some = [x for x, _ in in_order(own[:2048], batch=64, device=self.device)]
        released = [view.oracle(x) for x in some]
        mean = own.pixels().mean(0).to(self.device)
        network = Inverter(torch.cat(released), mean, settings.channels, settings.blocks).to(self.device)
        network.solve_linear(zip(released, some, strict=True))
        self.network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        solved = {id(p) for p in self.network.linear.parameters()}
        rest = [p for p in self.network.parameters() if id(p) not in solved]
        groups = [{"params": rest, "share": 1.0}, {"params": list(self.network.linear.parameters()), "share": 0.1}]
        self.optimiser = torch.optim.Adam(groups, lr=settings.lr, betas=(0.9, 0.99))
        self.epochs = self.steps = 0
        self.best, self.weights = math.inf, snapshot(self.network)
        self.curve = [self.validate()]

    def run_cycle(self, steps: int, title: str, progress: bool) -> float:
        """Rise to the full learning rate, fall to zero, and return the validation loss there."""
        done = 0
        self.steps += steps
        with bar(title, steps, unit_size=self.settings.batch, shown=progress) as show:
            while done < steps:
                for x, _ in self.loader.epoch(self.epochs):
                    share = done / steps
                    self.step(x, self.settings.lr * min(1.0, 20 * share + 0.05) * (1 + math.cos(math.pi * share)) / 2)
                    done += 1
                    if done == steps or done % max(1, steps // 4) == 0:
                        self.curve.append(self.validate())
                    show(done, mse=self.curve[-1])
                    if done == steps:
                        break
                self.epochs += 1
        self.network.load_state_dict(self.weights)
        return self.curve[-1]

    def step(self, x: Tensor, rate: float) -> None:
        """One step on what the device releases for these images, right now."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate * group["share"]
        loss = F.mse_loss(self.network(self.view.oracle(x)), x)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimiser.step()

    @torch.no_grad()
    def validate(self) -> float:
        """Mean squared error on public images that the inverter was not trained on; the best weights are kept."""
        errors = [
            (self.network(self.view.oracle(x)).clamp(0, 1) - x).square().mean((1, 2, 3))
            for x, _ in in_order(self.held_out, device=self.device)
        ]
        error = torch.cat(errors).mean().item()
        if error < self.best:
            self.best, self.weights = error, snapshot(self.network)
        return error

    @torch.no_grad()
    def invert(self, targets: Tensor) -> Tensor:
        """The guessed images, in [0,1]."""
        return torch.cat([self.network(part) for part in targets.split(256)]).clamp(0, 1)


def hold_out(public: Images, seed: int, share: float = 0.1) -> tuple[Images, Images]:
    """Split the public images into the attacker's training and validation parts."""
    order = torch.randperm(len(public), generator=torch.Generator().manual_seed(seed))
    held = max(1, round(share * len(public)))
    return public[order[held:]], public[order[:held]]


def snapshot(network: Inverter) -> dict[str, Tensor]:
    """A copy of the weights."""
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}
