"""What there is to see: validation images, their clean latents, and what each surrogate made of them."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8

from attcem.data import Data
from attcem.data.loader import in_order
from attcem.defences import Guard, Hybrid, Insight, Surrogate
from attcem.defences.hybrid import riskiest
from attcem.defences.surrogate import Part
from attcem.models import Split, attends, attention_maps
from attcem.types import Batch, Images

FEW = 12  # images on which the attention at the cut is drawn


@dataclass(frozen=True)
class Sight:
    """What one surrogate looked at, for those images that it can judge."""

    link: str  # the name under which the log keeps its readings
    name: str
    index: Int64[np.ndarray, " m"]  # which images of the scene these are
    weight: Float[np.ndarray, "m t"] | None
    """Attention on each token over an equal share: 1 is as much as any other of the class."""
    resp: Float[np.ndarray, "m t k"] | None
    """Responsibilities of slots or clusters; nothing where there is only one to choose."""
    gates: dict[str, Float[np.ndarray, " g"]]


@dataclass(frozen=True)
class Scene:
    """Everything that figures are drawn from."""

    x: UInt8[np.ndarray, "n h w 3"]
    y: Int64[np.ndarray, " n"]
    z: Float[np.ndarray, " n *latent"]
    names: tuple[str, ...]
    sigma: float
    chain: str  # the links of the defence in words
    blind: list[str]  # surrogates that treat all images of a class alike, or have not been fitted yet
    sights: list[Sight]
    epochs: list[dict[str, list[float]]]  # what the log kept of every epoch of training: `defence/figure` → a vector
    looks: tuple[Int64[np.ndarray, " m"], Float[np.ndarray, "m tokens a b"]] | None = None
    """Some images, and where each token that crosses looks on them; nothing where no attention decides that."""

    def grid(self, tokens: int) -> tuple[int, int] | None:
        """Rows and columns of positions, if that is what the tokens are."""
        shape = self.z.shape[2:]
        return (shape[0], shape[1]) if len(shape) == 2 and tokens == shape[0] * shape[1] > 1 else None

    def over_epochs(self, figure: str) -> Float[np.ndarray, "e d"] | None:
        """One row per epoch, NaN where it was not read; nothing unless there are two rows to compare."""
        length = max((len(epoch[figure]) for epoch in self.epochs if figure in epoch), default=0)
        rows = [epoch.get(figure, [np.nan] * length) for epoch in self.epochs]
        return np.array(rows) if length and len(rows) > 1 else None


def look(model: Split, guard: Guard, data: Data, images: int) -> Scene:
    if images < 2:
        raise ValueError(f"images={images} is too few to compare: give 2 or more, as in --images 1000")
    drawn = torch.randperm(len(data.validation), generator=torch.Generator().manual_seed(0))[:images]
    chosen = data.validation[drawn.sort().values]
    batch = encoded(model, chosen)
    seen = {name: sights(name, link, batch) for name, link in guard.named.items() if isinstance(link, Surrogate)}
    return Scene(
        x=np.broadcast_to(chosen.x.numpy(), (*chosen.x.shape[:3], 3)),
        y=chosen.y.numpy(),
        z=batch.z.double().cpu().numpy(),
        names=data.class_names,
        sigma=guard.sigma,
        chain=" + ".join(guard.named) or "none",
        blind=[name for name, found in seen.items() if not found],
        sights=[sight for found in seen.values() for sight in found],
        epochs=[] if model.record is None else model.record.diagnostics,
        looks=attended(model, chosen),
    )


@torch.no_grad()
def attended(model: Split, images: Images) -> tuple[np.ndarray, np.ndarray] | None:
    """The first image of each class, and the maps of the attention in the encoder, if there is one."""
    if not attends(model.encoder):
        return None
    index = np.unique(images.y.numpy(), return_index=True)[1][:FEW]
    where = next(model.parameters())
    chosen = images[torch.as_tensor(index)].pixels().to(where.device, where.dtype)
    return index, attention_maps(model.eval().encoder, chosen).double().cpu().numpy()


@torch.no_grad()
def encoded(model: Split, images: Images) -> Batch:
    """Images and their clean latents, which must be numbers."""
    where = next(model.parameters())
    pixels, latents = [], []
    for x, _ in in_order(images, device=where.device):
        pixels.append(x.to(where.dtype))
        latents.append(model.eval().encoder(pixels[-1]))
    z = torch.cat(latents)
    lost = int((~z.flatten(1).isfinite().all(1)).sum())
    if lost:
        raise ValueError(f"{lost} of {len(z)} latents are not finite: training diverged; try a lower train.lr")
    return Batch(torch.cat(pixels), images.y.to(where.device), z)


@torch.no_grad()
def sights(name: str, link: Surrogate, batch: Batch) -> list[Sight]:
    """What a surrogate saw; two of them for one that screens all classes and refines some."""
    part = link.eval().part(batch)
    if part is None:
        return []
    insight = link.losses(part)[1]
    views = [(name, part, insight)]
    if isinstance(link, Hybrid) and link.seen is not None:
        refined = part.of(riskiest(link.seen[1], link.refine))
        views = [
            (f"{name}, screening all classes", part, insight),
            (f"{name}, refining the riskiest classes", refined, link.refined.losses(refined)[1]),
        ]
    found = [seen_in(name, title, batch, of, what) for title, of, what in views]
    return [sight for sight in found if sight.weight is not None or sight.resp is not None or sight.gates]


def seen_in(link: str, name: str, batch: Batch, part: Part, insight: Insight) -> Sight:
    """An insight as arrays, with the images it is about; a part keeps all images of its classes, in order."""
    index = torch.isin(batch.y, part.present).nonzero().squeeze(1)
    weight, resp = insight.weight, insight.resp
    if weight is not None:
        weight = weight * (part.y.bincount(minlength=part.classes)[part.y] * weight.shape[1]).unsqueeze(1)
    return Sight(
        link=link,
        name=name,
        index=index.cpu().numpy(),
        weight=None if weight is None else weight.double().cpu().numpy(),
        resp=None if resp is None or resp.shape[2] < 2 else resp.double().cpu().numpy(),
        gates={gate: values.double().flatten().cpu().numpy() for gate, values in insight.gates.items()},
    )
