"""Property probe: what the released latent tells about a picture besides its class."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attcem.attacks.base import PerImage, Pictures, Probe, seeded, update
from attcem.attacks.regression import STRENGTHS, TrainingSet, ridge
from attcem.data.loader import in_order
from attcem.types import Images, Released, View


def contrast(x: Pictures) -> PerImage:
    return x.std((2, 3)).mean(1)


def busyness(x: Pictures) -> PerImage:
    down, right = x[..., 1:, :-1] - x[..., :-1, :-1], x[..., :-1, 1:] - x[..., :-1, :-1]
    return torch.hypot(down, right).mean((1, 2, 3))


def left_less_right(x: Pictures) -> PerImage:
    """Left half less right half; a middle column belongs to neither."""
    half = x.shape[3] // 2
    return x[..., :half].mean((1, 2, 3)) - x[..., -half:].mean((1, 2, 3))


PROPERTIES: dict[str, Callable[[Pictures], PerImage]] = {
    "brighter": lambda x: x.mean((1, 2, 3)),
    "redder": lambda x: x[:, 0].mean((1, 2)) - x[:, 1:].mean((1, 2, 3)),
    "starker": contrast,
    "busier": busyness,
    "heavier_left": left_less_right,
    "brighter_above": lambda x: left_less_right(x.mT),
}
"""Question → the figure that answers it: is it above the public median?"""

COLOURFUL = frozenset({"redder"})  # questions that make sense only of a picture with colours


def questions(images: Images) -> list[str]:
    return [name for name in PROPERTIES if images.shape[0] > 1 or name not in COLOURFUL]


def measured(images: Images) -> Float[Tensor, "n p"]:
    asked = [PROPERTIES[name] for name in questions(images)]
    return torch.cat([torch.stack([figure(x) for figure in asked], 1) for x, _ in in_order(images)])


def with_texture(released: Released) -> Float[Tensor, "b d"]:
    """The latent's values, and where it has height and width also every channel's contrast and busyness."""
    if released.ndim != 4 or min(released.shape[2:]) < 2:
        return released.flatten(1)
    texture = [figure(released.flatten(0, 1)[:, None]).reshape(released.shape[:2]) for figure in (contrast, busyness)]
    return torch.cat([released.flatten(1), *texture], 1)


def linear(data: TrainingSet, own: Float[Tensor, "n p"], held_out: Float[Tensor, "m p"]) -> list[tuple[Tensor, Tensor]]:
    """Weights and offsets to regress the figures by, and the answers, each question with its best strength."""
    wanted, unseen = (torch.cat([figures, figures.sign()], 1) for figures in (own, held_out))
    offset = wanted.mean(0)
    maps = ridge(data.own.features, wanted - offset, STRENGTHS)
    errors = (data.held_out.features @ maps + offset - unseen).square().mean(1)
    weights = torch.stack([maps[best, :, column] for column, best in enumerate(errors.argmin(0).tolist())], 1)
    return list(zip(weights.chunk(2, 1), offset.chunk(2), strict=True))


@dataclass(frozen=True)
class Scores:
    """What each reader makes of each question, above 0 for yes, and the truth where the attacker knows it."""

    held_out: Float[Tensor, "r m p"]
    known: Bool[Tensor, "m p"]
    targets: Float[Tensor, "r n p"]


@dataclass(frozen=True)
class PropertyProbe(Probe):
    """Says whether a picture is brighter, redder, busier, … than the public median, from its latent.

    For each question the attacker regresses the figure and the answer on the latent, trains a small network for the
    answer, and uses the one that is right most often on public images held out.
    """

    steps: int = 400
    batch: int = 256
    lr: float = 1e-3

    def __call__(self, view: View, *, seed: int = 0) -> Bool[Tensor, "n p"]:
        found = self.read(view, seed)
        best = ((found.held_out > 0) == found.known).float().mean(1).argmax(0)
        return torch.stack([found.targets[reader, :, one] > 0 for one, reader in enumerate(best.tolist())], 1).cpu()

    def read(self, view: View, seed: int) -> Scores:
        """Two regressions and a network, trained on public images, on those held out and on the targets."""
        figures = measured(view.public).to(view.targets.device)
        figures = (figures - figures.median(0).values) / figures.std(0).clamp_min(1e-6)
        with seeded(seed):
            data = TrainingSet.of(view, seed, with_texture)
            own, held_out = figures[data.own.of], figures[data.held_out.of]
            maps, network = linear(data, own, held_out), self.network(data.own.features, own > 0)
        with torch.no_grad():
            tried, answers = (
                torch.stack([*(latents @ weights + offset for weights, offset in maps), network(latents)])
                for latents in (data.held_out.features, data.read(view.targets))
            )
        return Scores(tried, held_out > 0, answers)

    def network(self, latents: Float[Tensor, "n d"], answers: Bool[Tensor, "n p"]) -> nn.Module:
        """One hidden layer, narrower where the latent is wide; trained to give yes a positive logit."""
        size, hidden = latents.shape[1], min(256, max(16, 2**20 // latents.shape[1]))
        layers = nn.Linear(size, hidden), nn.GELU(), nn.Dropout(0.2), nn.Linear(hidden, answers.shape[1])
        network = nn.Sequential(*layers).to(latents.device)
        optimiser = torch.optim.AdamW(network.parameters(), lr=self.lr, weight_decay=0.1)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=self.lr, total_steps=self.steps)
        for _ in range(self.steps):
            pick = torch.randint(len(latents), (self.batch,)).to(latents.device)
            loss = nn.functional.binary_cross_entropy_with_logits(network(latents[pick]), answers[pick].float())
            update(optimiser, loss)
            schedule.step()
        return network.eval()

    def score(self, answers: Tensor, truth: Images, gallery: Images, public: Images) -> Mapping[str, Tensor]:
        return dict(zip(questions(truth), (answers == true_answers(truth, public)).float().unbind(1), strict=True))

    def chance(self, truth: Images, gallery: Images, public: Images) -> Mapping[str, float]:
        """The share of the more frequent answer: what the best answer for all would score."""
        yes = true_answers(truth, public).float().mean(0)
        return dict(zip(questions(truth), torch.maximum(yes, 1 - yes).tolist(), strict=True))


def true_answers(images: Images, public: Images) -> Bool[Tensor, "n p"]:
    return measured(images) > measured(public).median(0).values
