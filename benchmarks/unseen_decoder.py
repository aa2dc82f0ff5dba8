"""Is the suite strong enough? A decoder that it does not have, trained twice as long, should find little more.

    python -m benchmarks.unseen_decoder runs/<id> ...      # runs with a finished audit, such as --suite standard
    python -m benchmarks.unseen_decoder --steps 8400 runs/<id>      # where the suite's longest decoder stopped at 4,200

The architecture is far from the suite's: batch norm and ReLU, transposed convolutions up to the picture's size with
convolutions at every size, no closed-form start, AdamW, one cycle. Tokens look at each other in a small transformer
first; tokens, vectors and maps of few cells are then laid out by two dense layers. It must lower the worst case (for
each picture the best of all attacks) by less than 5 %.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import replace
from itertools import chain, count, islice
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attcem.assess import observe
from attcem.attacks import SUITES
from attcem.attacks.decoder import Decoder
from attcem.attacks.pairs import Pairs, hold_out
from attcem.experiment import load_run, read_experiment
from attcem.metrics import METRICS
from attcem.progress import bar
from attcem.types import Result, View
from benchmarks.harness import Figure

GOAL = 0.05
SIDE = 4
"""Of the map on which a latent without places is laid out."""


class Block(nn.Module):
    """Batch norm before each of two 3×3 convolutions, ReLU, residual (He et al. 2016)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(layer for _ in range(2) for layer in normed(channels, channels)))

    def forward(self, x: Tensor) -> Tensor:
        """Of the same shape."""
        return x + self.layers(x)


def normed(narrow: int, wide: int) -> tuple[nn.Module, ...]:
    return nn.BatchNorm2d(narrow), nn.ReLU(), nn.Conv2d(narrow, wide, 3, padding=1)


class TokenReader(nn.Module):
    """Tokens with a place each, which look at each other twice."""

    def __init__(self, tokens: int, width: int, channels: int) -> None:
        super().__init__()
        self.enter = nn.Linear(width, channels)
        self.places = nn.Parameter(0.02 * torch.randn(tokens, channels))
        layer = nn.TransformerEncoderLayer(channels, 4, 2 * channels, dropout=0.0, batch_first=True, norm_first=True)
        self.look = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, z: Tensor) -> Tensor:
        """As many tokens, of another width."""
        return self.look(self.enter(z) + self.places)


def reader(latent: torch.Size, channels: int) -> tuple[nn.Module, int]:
    """What makes a map of so many channels from a latent, and the side of that map."""
    if len(latent) == 3 and latent[1] > SIDE:
        return nn.Conv2d(latent[0], channels, 3, padding=1), latent[1]
    looks, size = nn.Sequential(), math.prod(latent)
    if len(latent) == 2:
        looks.append(TokenReader(*latent, channels))
        size = latent[0] * channels
    dense = [nn.Linear(size, 1024), nn.BatchNorm1d(1024), nn.ReLU(), nn.Linear(1024, channels * SIDE**2)]
    return looks.extend([nn.Flatten(), *dense, nn.Unflatten(1, (channels, SIDE, SIDE))]), SIDE


class Unseen(nn.Module):
    """From the latent's grid to the picture, twice the side at a time."""

    def __init__(self, latent: torch.Size, image: tuple[int, int, int], channels: int = 64) -> None:
        super().__init__()
        colours, height, _ = image
        first, side = reader(latent, channels)
        layers: list[nn.Module] = [first, Block(channels), Block(channels)]
        for _ in range(round(math.log2(height / side))):
            narrow = channels // 2
            layers += [nn.ConvTranspose2d(channels, narrow, 4, stride=2, padding=1), *normed(narrow, narrow)]
            channels = narrow
        self.layers = nn.Sequential(*layers, *normed(channels, colours))

    def forward(self, z: Tensor) -> Tensor:
        """Guessed pictures, not clamped."""
        return self.layers(z) + 0.5


def trained(view: View, steps: int, batch: int, seed: int) -> tuple[Unseen, float]:
    """The decoder after one cycle, and its loss on public images it was not trained on."""
    assert view.oracle is not None
    torch.manual_seed(seed)
    own, held_out = hold_out(view.public, seed)
    pairs = Pairs(view.oracle, own, seed=seed, device=view.targets.device)
    network = Unseen(view.targets.shape[1:], own.shape).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=2e-3, total_steps=steps, pct_start=0.1)
    endless = chain.from_iterable(pairs.epoch(number, batch) for number in count())
    with bar("unseen decoder", steps, unit_size=batch) as show:
        for step, (released, x) in enumerate(islice(endless, steps), start=1):
            loss = F.mse_loss(network(released), x)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            show(step, loss=loss.item())
    network.eval()
    x = held_out.pixels()
    return network, F.mse_loss(inverted(network, view.oracle(x)), x).item()


@torch.no_grad()
def inverted(network: Unseen, released: Tensor) -> Tensor:
    return torch.cat([network(part) for part in released.split(256)]).clamp(0, 1)


def twice_as_long(suite: str) -> tuple[int, int]:
    """Twice the steps that the suite's longest decoder may take, and its batch."""
    attacks = next((known.attacks for known in SUITES.values() if known.version == suite), None)
    if attacks is None:
        raise ValueError(f"the run was audited with {suite}, which is no suite of today: `attcem audit RUN` again")
    decoders = [attack for attack in attacks.values() if isinstance(attack, Decoder)]
    longest = max(decoders, key=with_its_start)
    return 2 * with_its_start(longest), longest.batch


def with_its_start(decoder: Decoder) -> int:
    """Steps until it is trained, those of the decoders before it included."""
    return decoder.most_steps + (0 if decoder.start is None else with_its_start(decoder.start))


def lowered(folder: Path, steps: int | None) -> Figure:
    """By what share the worst case falls when the unseen decoder joins the suite."""
    result, experiment = Result.load(folder), read_experiment(folder)
    model, guard, data = load_run(folder)
    seed, images = experiment.audit.seed, len(result.per_image["worst/mse"])
    _, view, truth = observe(model, guard, data, replace(experiment.audit, images=images))
    most, batch = twice_as_long(result.suite)
    network, own = trained(view, steps or most, batch, seed + 1)
    found = METRICS["mse"](inverted(network, view.targets), truth.pixels())
    worst = torch.from_numpy(result.per_image["worst/mse"])
    joined = torch.minimum(found, worst)
    share = 1 - float(joined.mean() / worst.mean())
    print(f"{folder.name}: unseen decoder alone {found.mean():.5f} (own validation {own:.5f})")
    print(f"{folder.name}: worst case without it {worst.mean():.5f}, with it {joined.mean():.5f} ({-share:.1%})")
    return Figure(f"{folder.name}: worst case lowered by", share, GOAL, at_least=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--steps", type=int, help="default: twice what the suite's longest decoder may take")
    arguments = parser.parse_args()
    figures = [lowered(folder, arguments.steps) for folder in arguments.runs]
    print(*figures, sep="\n")
    sys.exit(not all(figure.holds for figure in figures))
