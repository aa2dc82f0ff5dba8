"""Is the suite strong enough? A decoder that it does not have, trained twice as long, should find little more.

    python -m benchmarks.unseen_decoder runs/<id> ...      # runs with a finished audit, such as --suite standard
    python -m benchmarks.unseen_decoder --steps 8400 runs/<id>      # where the suite's longest decoder stopped at 4,200

The architecture is far from the suite's: batch norm and ReLU, transposed convolutions up to the picture's size with
convolutions at every size, no closed-form start, AdamW, one cycle. Tokens look at each other in a small transformer
first; tokens, vectors and maps of few cells are then laid out by two dense layers. For each picture the best of all
attacks counts: with this decoder among them, no measure may come nearer to the pictures by more than 5 %. How often a
class is recognised is compared with the suite's best single attack, for the best of many is right by chance.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, count, islice
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attcem.assess import observe
from attcem.assess.judge import Judge, evaluator_for
from attcem.attacks import SUITES
from attcem.attacks.decoder import Decoder
from attcem.attacks.pairs import Pairs, hold_out
from attcem.attacks.suite import Suite
from attcem.experiment import load_run, read_experiment
from attcem.progress import bar
from attcem.types import Result, View
from benchmarks.harness import Figure

GOAL = 0.05
MEASURES = {"mse": False, "aligned_mse": False, "ssim": True, "feature_distance": False}
"""Measure → whether a higher value is nearer to the picture."""
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


def suite_of(result: Result) -> Suite:
    found = next((known for known in SUITES.values() if known.version == result.suite), None)
    if found is None:
        raise ValueError(
            f"the run was audited with {result.suite}, which is no suite of today: `attcem audit RUN` again"
        )
    return found


def twice_as_long(suite: Suite) -> tuple[int, int]:
    """Twice the steps that the suite's longest decoder may take, and its batch."""
    decoders = [attack for attack in suite.attacks.values() if isinstance(attack, Decoder)]
    longest = max(decoders, key=with_its_start)
    return 2 * with_its_start(longest), longest.batch


def with_its_start(decoder: Decoder) -> int:
    """Steps until it is trained, those of the decoders before it included."""
    return decoder.most_steps + (0 if decoder.start is None else with_its_start(decoder.start))


def nearer(found: Tensor, worst: Tensor, higher_is_nearer: bool) -> float:
    """By what share the mean worst case comes nearer to the pictures when one more guess of each joins it."""
    joined = torch.maximum(found, worst) if higher_is_nearer else torch.minimum(found, worst)
    return abs(float(joined.mean() / worst.mean()) - 1)


def compared(folder: Path, steps: int | None) -> Iterator[Figure]:
    """What the unseen decoder adds to the worst case of a run, by every measure."""
    result, experiment = Result.load(folder), read_experiment(folder)
    model, guard, data = load_run(folder)
    seed, images = experiment.audit.seed, len(result.per_image["worst/mse"])
    _, view, truth = observe(model, guard, data, replace(experiment.audit, images=images))
    suite = suite_of(result)
    most, batch = twice_as_long(suite)
    network, own = trained(view, steps or most, batch, seed + 1)
    judge = Judge(truth, evaluator_for(data, suite.seen, False, view.targets.device))
    judge.score("unseen", inverted(network, view.targets))
    found = judge.scores["unseen"]
    print(f"{folder.name}: own validation {own:.5f}")
    for measure, higher_is_nearer in MEASURES.items():
        worst = torch.from_numpy(result.per_image[f"worst/{measure}"])
        share = nearer(found[measure], worst, higher_is_nearer)
        print(f"{folder.name}: {measure} {found[measure].mean():.5f} alone, worst case {worst.mean():.5f} before")
        yield Figure(f"{folder.name}: {measure} nearer by", share, GOAL, at_least=False)
    best = max(scores.recon_acc for name, scores in result.attacks.items() if name not in result.repeated)
    alone = found["recon_acc"].mean().item()
    print(f"{folder.name}: recon_acc {alone:.3f} alone, {best:.3f} by the best attack of the suite")
    yield Figure(f"{folder.name}: recon_acc above the best attack's", alone - best, GOAL, at_least=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--steps", type=int, help="default: twice what the suite's longest decoder may take")
    arguments = parser.parse_args()
    figures = [figure for folder in arguments.runs for figure in compared(folder, arguments.steps)]
    print(*figures, sep="\n")
    sys.exit(not all(figure.holds for figure in figures))
