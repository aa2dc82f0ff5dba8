"""What the cloud's word on a latent says of the picture, before anything else is read from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attcem.attacks.inverter import Cells, Inverter
from attcem.types import Images, Released


class ClassAware(nn.Module):
    """An inverter of how a picture differs from its class: Σ_k p_k r_k + inverter(z).

    p are the cloud's probabilities for the latent z, r_k begins as the public mean of class k less that of all, and is
    trained with the inverter. Logits as further planes of the latent were tried: they keep it from learning.
    """

    def __init__(
        self,
        inverter: Inverter,
        cloud: Callable[[Released], Float[Tensor, "b classes"]],
        residuals: Float[Tensor, "classes c h w"],
    ) -> None:
        super().__init__()
        self.inverter, self.cloud = inverter, cloud
        self.residuals = nn.Parameter(residuals)

    def deepen(self, blocks: int, *, attention: bool = False) -> None:
        """Deepen the inverter."""
        self.inverter.deepen(blocks, attention=attention)

    def read(self, grid: Cells) -> None:
        """Let the inverter look at another grid."""
        self.inverter.read(grid)

    @property
    def grid(self) -> Cells:
        """What the inverter looks at."""
        return self.inverter.grid

    def solved(self) -> Iterator[nn.Parameter]:
        """What starts solved: the inverter's linear part, and the residuals."""
        yield from self.inverter.solved()
        yield self.residuals

    @torch.no_grad()
    def solve_linear(self, pairs: Iterable[tuple[Tensor, Tensor]]) -> None:
        """Solve the inverter for what the classes leave."""
        self.inverter.solve_linear((released, x - self.by_class(released)) for released, x in pairs)

    def by_class(self, released: Released) -> Float[Tensor, "b c h w"]:
        """By how much the pictures of these latents differ from the mean image, as far as their classes tell."""
        with torch.no_grad():
            probable = self.cloud(released).softmax(1)
        return torch.einsum("bk,kchw->bchw", probable, self.residuals)

    def forward(self, released: Released) -> Float[Tensor, "b c h w"]:
        """The guessed images, not clamped."""
        return self.inverter(released) + self.by_class(released)


def class_residuals(images: Images, classes: int) -> Float[Tensor, "classes c h w"]:
    """How the mean image of each class differs from that of all; not at all for a class nobody has seen."""
    mean = images.mean()
    of_class = (images[images.y == label] for label in range(classes))
    return torch.stack([some.mean() - mean if len(some) else torch.zeros_like(mean) for some in of_class])
