"""The task as the cloud would measure it, on released latents; and clean latents as a defence sees them."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from attcem.config import TrainConfig
from attcem.data.loader import in_order
from attcem.defences import Defence, Guard
from attcem.models import Split
from attcem.train.team import ALONE, Team
from attcem.types import Batch, Images


@torch.no_grad()
def evaluate(
    model: Split, guard: Guard | Defence, images: Images, *, batch: int = 256, team: Team = ALONE
) -> tuple[float, float]:
    """Mean cross-entropy and accuracy (Prec@1) of the cloud half on what the device releases."""
    if not len(images):
        raise ValueError("nothing to evaluate: the partition is empty")
    modes = model.training, guard.training
    model.eval(), guard.eval()
    where = next(model.parameters())
    loss, correct = 0.0, 0
    for x, y in in_order(images, batch, where.device):
        released = guard.release(team.run_rows(model.encoder, x.to(where.dtype)))
        logits = team.run_rows(model.decoder, released)
        loss += F.cross_entropy(logits, y, reduction="sum").item()
        correct += int((logits.argmax(1) == y).sum())
    model.train(modes[0]), guard.train(modes[1])
    return loss / len(images), correct / len(images)


def clean_latents(model: Split, images: Images, batch: int, team: Team = ALONE) -> Iterator[Batch]:
    """Batches with their clean latents in evaluation mode, computed as they are read."""
    model.eval()
    where = next(model.parameters())
    for pixels, y in in_order(images, batch, where.device):
        x = pixels.to(where.dtype)
        with torch.no_grad():
            z = team.run_rows(model.encoder, x)
        yield Batch(x, y, z)


def review_images(
    model: Split, guard: Guard, images: Images, config: TrainConfig, epochs_done: int, team: Team = ALONE
) -> None:
    """Show images to those defences of a guard that ask for it and are about to be used."""
    for link in guard.links:
        if type(link).review is not Defence.review and link.warmup <= epochs_done < config.epochs:
            link.review(clean_latents(model, images, config.batch, team))
