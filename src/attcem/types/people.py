"""Who is on a picture: other photos of some people, and a way to compare faces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from attcem.types.images import Images
from attcem.types.mapped import blocks

Pictures = Float[Tensor, "n c h w"]
Embed = Callable[[Pictures], Float[Tensor, "n d"]]


@dataclass(frozen=True)
class People:
    """People by class, each told by the mean embedding of their photos."""

    templates: Float[Tensor, "classes d"]
    present: Bool[Tensor, " classes"]  # whether there are photos of them
    embed: Embed

    @classmethod
    def of(cls, photos: Images, classes: int, embed: Embed) -> People:
        embedded = torch.cat([embed(photos[rows].pixels()).cpu() for rows in blocks(photos.x)])
        belongs = F.one_hot(photos.y.cpu(), classes).to(embedded)
        count = belongs.sum(0)
        return cls(belongs.T @ embedded / count.clamp_min(1)[:, None], count > 0, embed)

    @property
    def centre(self) -> Float[Tensor, " d"]:
        return self.templates[self.present].mean(0)

    def likeness(self, embedded: Float[Tensor, "n d"]) -> Float[Tensor, "n classes"]:
        """Cosine to each person, both seen from the centre of all; -inf for those without photos."""
        seen, known = (F.normalize(part.cpu() - self.centre) for part in (embedded, self.templates))
        return (seen @ known.T).masked_fill(~self.present, -torch.inf)
