"""What pictures look like, learnt from public images: a variational autoencoder."""

import math
from dataclasses import dataclass
from itertools import chain, count, islice

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attcem.attacks.base import Pictures, seeded, update
from attcem.attacks.grid import PATCH, Unfold
from attcem.attacks.inverter import Residual, zeroed
from attcem.data.loader import Loader
from attcem.progress import bar
from attcem.types import Images, View


class VAE(nn.Module):
    """Variational autoencoder that starts as probabilistic PCA, the best linear one (Tipping and Bishop 1999).

    Both halves are the linear map plus what convolutions add to it, which starts at zero.
    """

    mean: Tensor

    def __init__(self, pixels: Pictures, dimensions: int, channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", pixels.mean(0))
        colours, height, width = self.mean.shape
        grid = math.ceil(height / PATCH), math.ceil(width / PATCH)
        self.missing = 0, grid[1] * PATCH - width, 0, grid[0] * PATCH - height
        cells = channels * math.prod(grid)
        self.project = nn.Linear(self.mean.numel(), 2 * dimensions)
        stem = nn.Conv2d(colours * PATCH**2, channels, 3, padding=1)
        self.look = nn.Sequential(nn.PixelUnshuffle(PATCH), stem, Residual(channels))
        self.add = zeroed(nn.Linear(cells, 2 * dimensions))
        self.paint = nn.Linear(dimensions, self.mean.numel(), bias=False)
        self.spread = nn.Sequential(nn.Linear(dimensions, cells), nn.Unflatten(1, (channels, *grid)))
        self.body = nn.Sequential(nn.GELU(), Residual(channels), Residual(channels))
        fine = max(8, channels // 8)
        self.unfold = Unfold(channels, fine, 3, PATCH)
        self.out = zeroed(nn.Conv2d(fine, colours, 3, padding=1))
        self.start_linear(pixels)

    @torch.no_grad()
    def start_linear(self, pixels: Pictures) -> None:
        """The maximum likelihood solution: axes u_k, variances λ_k, and the mean s² of the variances left out."""
        flat = (pixels - self.mean).flatten(1)
        dimensions = self.paint.in_features
        _, size, axes = torch.pca_lowrank(flat, q=min(dimensions + 16, *flat.shape), center=False, niter=4)
        variance, axes = size[:dimensions].square() / len(flat), axes[:, :dimensions]
        left = (flat.square().sum() / len(flat) - variance.sum()).clamp_min(0) / max(1, flat.shape[1] - dimensions)
        variance, left = variance.clamp_min(1e-8), left.clamp_min(1e-8)
        gain = (variance - left).clamp_min(0).sqrt()
        self.paint.weight.copy_(axes * gain)
        self.project.weight.copy_(torch.cat([(axes * gain / variance).T, torch.zeros_like(axes.T)]))
        spread = (left / torch.maximum(variance, left)).log()
        self.project.bias.copy_(torch.cat([torch.zeros_like(spread), spread]))

    def encode(self, x: Pictures) -> tuple[Float[Tensor, "b k"], Float[Tensor, "b k"]]:
        """Mean and log variance of the latent."""
        away = x - self.mean
        cells = F.gelu(self.look(F.pad(away, self.missing)))
        centre, spread = (self.project(away.flatten(1)) + self.add(cells.flatten(1))).chunk(2, 1)
        return centre, spread.clamp(-12, 4)

    def generate(self, w: Float[Tensor, "b k"]) -> Pictures:
        height, width = self.mean.shape[1:]
        added = self.out(F.gelu(self.unfold(self.body(self.spread(w)))))[..., :height, :width]
        return self.mean + self.paint(w).unflatten(1, self.mean.shape) + added


def negative_bound(x: Tensor, painted: Tensor, centre: Tensor, spread: Tensor) -> Float[Tensor, ""]:
    """−ELBO per pixel with the best variance for the batch (Rybkin et al. 2021): ½ log MSE + KL(q ‖ N(0, I)) / d."""
    divergence = 0.5 * (centre.square() + spread.exp() - 1 - spread).sum(1).mean()
    return 0.5 * F.mse_loss(painted, x).clamp_min(1e-6).log() + divergence / x[0].numel()


@dataclass(frozen=True)
class Prior:
    """An image model of the attacker's public images: a VAE."""

    dimensions: int = 512
    channels: int = 32
    steps: int = 400
    batch: int = 64
    lr: float = 2e-3

    def trained(self, view: View, images: Images, seed: int, progress: bool = False) -> VAE:
        return view.workbook.model(self, seed, lambda: self.train(images, view.targets.device, seed, progress))

    def train(self, images: Images, device: torch.device, seed: int, progress: bool) -> VAE:
        pixels = images.pixels().to(device)
        batches = chain.from_iterable(map(Loader(images, self.batch, device=device, seed=seed).epoch, count()))
        with seeded(seed), bar("image model", self.steps, unit_size=self.batch, shown=progress) as show:
            model = VAE(pixels, min(self.dimensions, len(images), pixels[0].numel()), self.channels).to(device)
            linear = [*model.project.parameters(), *model.paint.parameters()]
            rest = [p for p in model.parameters() if all(p is not known for known in linear)]
            groups = [{"params": rest, "share": 1.0}, {"params": linear, "share": 0.1}]
            optimiser = torch.optim.Adam(groups, betas=(0.9, 0.99))
            for step, (x, _) in enumerate(islice(batches, self.steps)):
                share = step / self.steps
                for group in optimiser.param_groups:
                    group["lr"] = group["share"] * self.lr * min(1.0, 10 * share + 0.02) * (1 - share)
                centre, spread = model.encode(x)
                w = centre + (spread / 2).exp() * torch.randn_like(centre)
                loss = negative_bound(x, model.generate(w), centre, spread)
                update(optimiser, loss, clipped=model.parameters())
                show(step + 1, bound=loss.item())
        return model.eval().requires_grad_(False)
