"""A decoder that also reads what the cloud says of the class, and adds to the public mean of that class."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attcem.attacks.base import Pictures
from attcem.attacks.decoder import Grown
from attcem.attacks.inversion import Inversion
from attcem.attacks.inverter import Inverter
from attcem.types import Images, Released


@dataclass(frozen=True)
class ClassAware(Grown):
    """Inverts how a picture differs from its class, which the cloud's logits tell."""

    @property
    def words(self) -> list[str]:
        return [*self.start.words, "the cloud's logits and class means"]

    @property
    def needs(self) -> frozenset[str]:
        return self.start.needs | {"labels", "logits"}

    def network(self, training: Inversion, before: Inverter | None) -> Inverter:
        assert before is not None, "it grows from its start"
        cloud, targets = training.view.cloud, training.view.targets
        if cloud is None:
            raise ValueError("a class-aware decoder reads the cloud's logits: give the view its cloud")
        residuals = class_residuals(training.own, classes=cloud(targets[:1]).shape[1])
        before.terms.append(ClassMeans(lambda z: cloud(z), residuals.to(training.device)))
        released, x = training.first_pairs()
        before.solve_linear(zip(released.split(64), x.split(64), strict=True))
        return before


class ClassMeans(nn.Module):
    """By how much pictures differ from the mean image, as far as their classes tell: Σ_k p_k r_k.

    p are the cloud's probabilities for the latent, r_k begins as the public mean of class k less that of all, and is
    trained with the inverter. Logits as further planes of the latent were tried: they keep it from learning.
    """

    def __init__(self, cloud: Callable[[Released], Tensor], residuals: Float[Tensor, "classes c h w"]) -> None:
        super().__init__()
        self.cloud, self.residuals = cloud, nn.Parameter(residuals)

    def forward(self, released: Released) -> Pictures:
        with torch.no_grad():
            probable = self.cloud(released).softmax(1)
        return torch.einsum("bk,kchw->bchw", probable, self.residuals)


def class_residuals(images: Images, classes: int) -> Float[Tensor, "classes c h w"]:
    """How the mean image of each class differs from that of all; not at all for a class nobody has seen."""
    mean = images.mean()
    of_class = (images[images.y == label] for label in range(classes))
    return torch.stack([some.mean() - mean if len(some) else torch.zeros_like(mean) for some in of_class])
