"""Is the right person recognised? One value per picture from its likeness to every person."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor

RANKS = (1, 5)
FALSE_ACCEPTS = 0.01  # share of wrong claims that verification lets through


def recognition(likeness: Float[Tensor, "n classes"], who: Int64[Tensor, " n"]) -> dict[str, Float[Tensor, " n"]]:
    """Whether the true person is among the one or five most alike, and whether the claim to be that person passes.

    A claim passes above the likeness that at most 1 % of all wrong claims exceed; ties go against the attacker.
    """
    right = likeness.gather(1, who[:, None])
    wrong = likeness.isfinite() & ~F.one_hot(who, likeness.shape[1]).bool()
    ahead = ((likeness >= right) & wrong).sum(1)
    found = {f"person_top{rank}": ((ahead < rank) & right[:, 0].isfinite()).float() for rank in RANKS}
    return found | {"person_verified": (right[:, 0] > threshold(likeness, wrong)).float()}


def threshold(likeness: Float[Tensor, "n classes"], wrong: Bool[Tensor, "n classes"]) -> Float[Tensor, ""]:
    """The lowest likeness that no more than the allowed share of wrong claims exceeds."""
    claims = likeness[wrong].sort(descending=True).values
    return claims[int(FALSE_ACCEPTS * len(claims))] if len(claims) else likeness.new_tensor(torch.inf)


def blind(who: Int64[Tensor, " n"]) -> dict[str, float]:
    """What the best answer that is the same for every picture would score: it names those who are attacked most."""
    share = who.bincount().sort(descending=True).values / len(who)
    return {f"person_top{rank}": share[:rank].sum().item() for rank in RANKS} | {"person_verified": FALSE_ACCEPTS}
