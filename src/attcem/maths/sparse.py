"""What a release with exact zeros is made of: which of its entries are there, and what they are."""

from jaxtyping import Float
from torch import Tensor


def positions(z: Float[Tensor, " b *latent"]) -> Float[Tensor, " b *latent"]:
    """1 where an entry is there, else 0."""
    return (z != 0).to(z.dtype)


def values(z: Float[Tensor, " b *latent"]) -> Float[Tensor, "b d"]:
    """All entries of each sample, the largest first: nothing tells where they stood."""
    return z.flatten(1).sort(dim=1, descending=True).values


def apart(z: Float[Tensor, " b *latent"]) -> dict[str, Tensor]:
    """Both, by name."""
    return {"positions": positions(z), "values": values(z)}
