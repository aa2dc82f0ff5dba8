"""The same picture again: which of the candidates did the device see? No picture is reconstructed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from attcem.attacks.base import Pictures, Probe, noise_variance, seeded
from attcem.data.loader import in_order
from attcem.types import Images, Oracle, View

TOP = 5  # candidates that the attacker names for each target
QUIET = 1e-4
"""A position without noise counts as if it had this share of the mean variance: exact, but not infinitely so."""


@dataclass(frozen=True)
class SamePicture(Probe):
    """Queries every candidate and names those whose latents lie nearest to the observed one.

    Distances are in units of the release's own noise at each position, as repeated queries of public images tell it.
    """

    repeats: int = 8  # queries of every candidate, averaged
    sample: int = 256  # public images that the noise is measured on

    def __call__(self, view: View, *, seed: int = 0) -> Int64[Tensor, "n top"]:
        if view.oracle is None or view.gallery is None:
            raise ValueError(
                "same_picture queries candidates: choose the threat model query or white_box, and give a gallery"
            )
        device, seen = view.targets.device, view.targets.flatten(1)
        centre, numbered = seen.mean(0), Images(view.gallery.x, torch.arange(len(view.gallery)))
        with seeded(seed):
            some = view.public[torch.randperm(len(view.public))[: self.sample]]
            scale = noise_scale(view.oracle, some.pixels().to(device), self.repeats)
            asked = in_order(numbered, device=device)
            latents = (((view.oracle(x, self.repeats).flatten(1) - centre) / scale, places) for x, places in asked)
            return nearest((seen - centre) / scale, latents).cpu()

    def score(self, answers: Tensor, truth: Images, gallery: Images, public: Images) -> Mapping[str, Tensor]:
        right = torch.stack([(gallery.x[named] == truth.x).flatten(1).all(1) for named in answers.unbind(1)], 1)
        return {"top1": right[:, 0].float(), f"top{TOP}": right.any(1).float()}

    def chance(self, truth: Images, gallery: Images, public: Images) -> Mapping[str, float]:
        return {f"top{top}": min(1.0, top / len(gallery)) for top in (1, TOP)}


def noise_scale(oracle: Oracle, x: Pictures, pairs: int) -> Float[Tensor, " d"]:
    """Standard deviation of the release within an image, position by position; 1 everywhere if it adds no noise."""
    recording = oracle.record(x.split(64))
    index = torch.arange(len(x), device=x.device)
    variance = torch.stack([noise_variance(recording(index), recording(index)) for _ in range(pairs)]).mean(0).flatten()
    typical = variance.mean()
    return variance.clamp_min(QUIET * typical).sqrt() if typical > 0 else torch.ones_like(variance)


def nearest(
    targets: Float[Tensor, "n d"], batches: Iterable[tuple[Float[Tensor, "_ d"], Int64[Tensor, " _"]]]
) -> Int64[Tensor, "n top"]:
    """The places of the nearest candidates, nearest first; no more than a batch of distances exists at a time."""
    targets = targets.double()
    apart = targets.new_empty(len(targets), 0)
    named = apart.long()
    for candidates, places in batches:
        apart = torch.cat([apart, torch.cdist(targets, candidates.double())], 1)
        named = torch.cat([named, places.expand(len(targets), -1)], 1)
        apart, best = apart.topk(min(TOP, apart.shape[1]), largest=False)
        named = named.gather(1, best)
    return named
