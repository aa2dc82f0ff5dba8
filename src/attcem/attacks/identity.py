"""Identity: who is on the picture? The embedding of a face is read off the release; no picture is reconstructed."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from attcem.attacks.base import QUERY, Probe, seeded
from attcem.attacks.pairs import hold_out, pairs_of
from attcem.attacks.regression import STRENGTHS, ridge
from attcem.maths.recognition import blind, recognition
from attcem.types import Images, People, View

ROWS = 4096  # releases to learn from, at most


@dataclass(frozen=True)
class Identity(Probe):
    """Regresses the embedding of a face on its release, with photos of other people, and compares it with known faces.

    How strong the ridge is, is chosen on people that it was not fitted to; then it is fitted to all.
    """

    needs = QUERY | {"people"}

    held_out: int = 3  # one in so many people is kept to choose by

    def __call__(self, view: View, *, seed: int = 0) -> Float[Tensor, "n classes"]:
        if view.oracle is None or view.people is None:
            raise ValueError(
                "identity asks the device and needs photos of people: choose the threat model query or white_box, and "
                "load data with strangers=True"
            )
        with seeded(seed):
            released, embedded, who = examples(view, view.people, seed)
            centre, spread = released.mean(0), released.std(0).clamp_min(1e-6)
            features, wanted = (released - centre) / spread, embedded - embedded.mean(0)
            strength = self.strength(features, wanted, who)
            weights = ridge(features, wanted, [strength])[0]
            told = ((view.targets.flatten(1) - centre) / spread) @ weights
        return view.people.likeness(told.cpu() + view.people.centre)

    def strength(self, features: Float[Tensor, "n d"], wanted: Float[Tensor, "n e"], who: Int64[Tensor, " n"]) -> float:
        people = who.unique()
        unknown = torch.isin(who, people[torch.randperm(len(people)).to(who.device)][:: self.held_out])
        maps = ridge(features[~unknown], wanted[~unknown], STRENGTHS)
        errors = (features[unknown] @ maps - wanted[unknown]).square().mean((1, 2))
        return STRENGTHS[int(errors.argmin())]

    def score(self, answers: Tensor, truth: Images, gallery: Images, public: Images) -> Mapping[str, Tensor]:
        return recognition(answers, truth.y)

    def chance(self, truth: Images, gallery: Images, public: Images) -> Mapping[str, float]:
        return blind(truth.y)


def examples(
    view: View, people: People, seed: int
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "n e"], Int64[Tensor, " n"]]:
    """Releases of public photos, as they are and shifted and mirrored, their embeddings, and who is on them."""
    pairs = pairs_of(view, hold_out(view.public, seed)[0], seed)
    some = torch.randperm(len(pairs.images))[:ROWS].to(pairs.device)
    copies = [pairs.copy(number) for number in range(max(1, min(pairs.variants, ROWS // len(some))))]
    released = [recording(part).flatten(1) for _, recording in copies for part in some.split(256)]
    embedded = [
        people.embed(x[part].permute(0, 3, 1, 2).float().div(255)).to(pairs.device)
        for x, _ in copies
        for part in some.split(256)
    ]
    who = pairs.images.y.to(pairs.device)[some].repeat(len(copies))
    return torch.cat(released), torch.cat(embedded), who
