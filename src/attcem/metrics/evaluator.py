"""An independent judge: a small network of its own, trained on labelled images, unrelated to the victim."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64, UInt8
from torch import Tensor, nn

from attcem.metrics.image import PerImage, Pictures
from attcem.progress import bar
from attcem.types import Images
from attcem.types.mapped import blocks

Example = tuple[Float[Tensor, "b c h w"], Int64[Tensor, " b"]]
MEASURED = 4096 * 64**2  # pixels that the channels' mean and spread are measured on, at most
HELD_OUT = 0.1  # share of the images that only the judge's own accuracy is measured on


def step(channels_in: int, channels_out: int, reach: int = 3, stride: int = 1) -> nn.Sequential:
    convolution = nn.Conv2d(channels_in, channels_out, reach, stride, reach // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(channels_out), nn.ReLU(inplace=True))


class Recogniser(nn.Module):
    """Three depths of convolutions at a half, a quarter and an eighth of the size, pooled into class logits."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Float[Tensor, " c"], std: Float[Tensor, " c"], classes: int) -> None:
        super().__init__()
        self.register_buffer("mean", mean[:, None, None])
        self.register_buffer("std", std[:, None, None])
        half = nn.Sequential(step(len(mean), 32, 5, stride=2), step(32, 32))
        quarter = nn.Sequential(step(32, 64, stride=2), step(64, 64))
        self.depths = nn.ModuleList([half, quarter, step(64, 128, stride=2)])
        self.head = nn.Linear(128, classes)

    def features(self, x: Float[Tensor, "b c h w"]) -> list[Float[Tensor, "b _ _ _"]]:
        seen = [(x - self.mean) / self.std]
        for depth in self.depths:
            seen.append(depth(seen[-1]))
        return seen[1:]

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b classes"]:
        return self.head(self.features(x)[-1].mean((2, 3)))


@dataclass(frozen=True)
class Evaluator:
    """Names what a picture shows and measures how different two look; `accuracy` is its own, on images held out."""

    network: Recogniser
    accuracy: float

    @property
    def device(self) -> torch.device:
        """Where it was trained, and judges; pictures may come from anywhere, and scores go back there."""
        return self.network.mean.device

    @classmethod
    def train(
        cls,
        images: Images,
        classes: int,
        *,
        seed: int = 0,
        progress: bool = False,
        seen: int = 160_000,
        epochs: int = 16,
        batch: int = 128,
    ) -> Evaluator:
        """Learn to name images, on the device that they lie on.

        It meets each at most `epochs` times, and of all at most `seen` (of 32×32 pixels).
        """
        if len(images) < 2:
            raise ValueError(f"an evaluator cannot learn from {len(images)} labelled images: give it at least 2")
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(images), generator=generator)
        held = max(1, round(HELD_OUT * len(images)))
        own, rest = images.divide([order[held:], order[:held]])
        _, height, width = images.shape
        steps = max(1, min(epochs * len(own), seen * 32**2 // (height * width)) // batch)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            network = fresh(own, classes)
            fit(network, batches(own, batch, steps, generator), steps, progress)
        judge = cls(network.eval(), 0.0)
        right = [judge.recognised(rest[rows].pixels(), rest.y[rows]) for rows in blocks(rest.x)]
        return cls(network, torch.cat(right).mean().item())

    @classmethod
    def restored(cls, state: dict[str, Tensor], images: Images, classes: int) -> Evaluator:
        """The evaluator of these images that a state dict was taken from, with its `accuracy` among the tensors."""
        network = fresh(images[:2], classes)
        network.load_state_dict({name: tensor for name, tensor in state.items() if name != "accuracy"})
        return cls(network.eval(), state["accuracy"].item())

    @torch.no_grad()
    def recognised(self, pictures: Pictures, y: Int64[Tensor, " n"]) -> PerImage:
        named = torch.cat([self.network(part.to(self.device)).argmax(1) for part in pictures.clamp(0, 1).split(256)])
        return (named.to(y.device) == y).float()

    @torch.no_grad()
    def embed(self, pictures: Pictures) -> Float[Tensor, "n d"]:
        """Its deepest features of all places, scaled to unit length."""
        parts = (self.network.features(part.to(self.device))[-1].flatten(1) for part in pictures.clamp(0, 1).split(256))
        return F.normalize(torch.cat(list(parts)))

    @torch.no_grad()
    def distance(self, guess: Pictures, truth: Pictures) -> PerImage:
        """Mean over three depths and all places of ‖f(x̂) − f(x)‖², features of a place scaled to unit length.

        In the spirit of LPIPS (Zhang et al. 2018) but with this network's features, not comparable with it.
        """
        found = []
        for some in zip(guess.clamp(0, 1).split(256), truth.split(256), strict=True):
            pairs = zip(*(self.network.features(part.to(self.device)) for part in some), strict=True)
            apart = [(F.normalize(a) - F.normalize(b)).square().sum(1).mean((1, 2)) for a, b in pairs]
            found.append(torch.stack(apart).mean(0))
        return torch.cat(found).to(truth.device)


def fresh(images: Images, classes: int) -> Recogniser:
    _, height, width = images.shape
    some = images[: max(1, MEASURED // (height * width))].pixels()
    mean, std = some.mean((0, 2, 3)), some.std((0, 2, 3)).clamp_min(1e-3)
    return Recogniser(mean, std, classes).to(images.x.device, memory_format=torch.channels_last)  # type: ignore[call-overload]


def fit(network: Recogniser, examples: Iterator[Example], steps: int, progress: bool) -> None:
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-2, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=1e-2, total_steps=max(2, steps))
    with bar("independent judge", steps, unit="steps", shown=progress) as show:
        for done, (x, y) in enumerate(examples, start=1):
            loss = F.cross_entropy(network(x), y, label_smoothing=0.1)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            schedule.step()
            show(done, loss=loss.item())


def batches(images: Images, batch: int, steps: int, generator: torch.Generator) -> Iterator[Example]:
    """So many shuffled batches: shifted by up to an eighth, mirrored, and a third of them blurred as guesses are."""
    _, height, width = images.shape
    order = torch.empty(0, dtype=torch.long)
    for _ in range(steps):
        while len(order) < batch:
            order = torch.cat([order, torch.randperm(len(images), generator=generator)])
        pick, order = order[:batch], order[batch:]
        down = torch.randint(-(height // 8), height // 8 + 1, (batch,), generator=generator)
        right = torch.randint(-(width // 8), width // 8 + 1, (batch,), generator=generator)
        flip, blurred = torch.rand(2, batch, generator=generator) < torch.tensor([[1 / 2], [1 / 3]])
        x = moved(images.x[pick], down, right, flip).permute(0, 3, 1, 2).float().div_(255)
        x[blurred] = blur(x[blurred])
        yield x, images.y[pick]


def moved(
    x: UInt8[Tensor, "b h w c"], down: Int64[Tensor, " b"], right: Int64[Tensor, " b"], flip: Bool[Tensor, " b"]
) -> UInt8[Tensor, "b h w c"]:
    """Each image moved by its own number of pixels, the border repeated, and mirrored where said."""
    count, height, width, _ = x.shape
    rows = (torch.arange(height) + down[:, None]).clamp(0, height - 1)
    columns = (torch.arange(width) + right[:, None]).clamp(0, width - 1)
    columns = torch.where(flip[:, None], columns.flip(1), columns)
    return x[torch.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]


def blur(x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
    for _ in range(2):
        x = F.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=False)
    return x
