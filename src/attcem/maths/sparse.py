"""What a release with exact zeros is made of: which of its entries are there, and what they are."""

from jaxtyping import Float
from torch import Tensor


def positions(z: Float[Tensor, " b *latent"]) -> Float[Tensor, " b *latent"]:
    """1 where an entry is there, else 0."""
    return (z != 0).to(z.dtype)


def values(z: Float[Tensor, " b *latent"], most: int | None = None) -> Float[Tensor, "b d"]:
    """The entries of each sample, the farthest from 0 first, at most so many: nothing tells where they stood."""
    entries = z.flatten(1)
    return entries.gather(1, entries.abs().argsort(dim=1, descending=True)[:, :most])


def apart(z: Float[Tensor, " b *latent"], most: int | None = None) -> dict[str, Tensor]:
    """Both, by name, where at most so many entries of a sample are there."""
    return {"positions": positions(z), "values": values(z, most)}
