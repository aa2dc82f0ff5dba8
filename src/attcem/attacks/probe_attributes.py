"""Attribute probe: what the released latent tells of a picture in several words at once, and how sure that is."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from attcem.attacks.base import Probe
from attcem.attacks.probe_property import PropertyProbe, Scores, true_answers
from attcem.types import Images, View

STEPS, DECAY = 100, 1e-6  # of L-BFGS, and as little as keeps weights finite where every answer is certain
UNSEEN = 0.5  # so often each combination counts as seen before the public images are


def combinations(attributes: int) -> Bool[Tensor, "c p"]:
    """Every way to answer so many questions; the answers to one picture are the binary digits of its place."""
    return torch.arange(2**attributes)[:, None] // 2 ** torch.arange(attributes) % 2 == 1


def place(answers: Bool[Tensor, "n p"]) -> Int64[Tensor, " n"]:
    return (answers * 2 ** torch.arange(answers.shape[1], device=answers.device)).sum(1)


def frequencies(answers: Bool[Tensor, "n p"]) -> Float[Tensor, " c"]:
    """How often each combination occurs among these images."""
    counts = place(answers).bincount(minlength=2 ** answers.shape[1]) + UNSEEN
    return counts / counts.sum()


def describe(found: Scores) -> Float[Tensor, "n c"]:
    """P(c|z) ∝ exp( Σ_a c_a·(w_a·s_a(z) + b_a) + Σ_{a<b} J_ab·c_a·c_b ), c_a = ±1, s the scores of the readers of z.

    A conditional random field (Lafferty et al. 2001), summed exactly: answers hang together as they do in pictures. All
    of w, b, J are fitted by likelihood to public pictures that no reader was trained on, which calibrates it.
    """
    readers, _, attributes = found.held_out.shape
    centre, spread = found.held_out.mean(1, keepdim=True), found.held_out.std(1, keepdim=True).clamp_min(1e-6)
    held_out, targets = ((scores - centre) / spread for scores in (found.held_out, found.targets))
    signs = 2.0 * combinations(attributes).to(centre) - 1
    one, other = torch.triu_indices(attributes, attributes, 1).to(centre.device)
    pairs, true = signs[:, one] * signs[:, other], place(found.known)
    shapes = (readers, 1, attributes), (attributes,), pairs.shape[1:]
    weights, offsets, together = fitted = [centre.new_zeros(shape, requires_grad=True) for shape in shapes]

    def energies(scores: Float[Tensor, "r n p"]) -> Float[Tensor, "n c"]:
        return ((weights * scores).sum(0) + offsets) @ signs.T + together @ pairs.T

    optimiser = torch.optim.LBFGS(fitted, max_iter=STEPS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = F.cross_entropy(energies(held_out), true) + DECAY * sum(each.square().sum() for each in fitted)
        loss.backward()
        return loss

    optimiser.step(closure)
    with torch.no_grad():
        return energies(targets).softmax(1)


@dataclass(frozen=True)
class AttributeProbe(Probe):
    """Describes a picture: all answers of the property probe at once, with a probability for every combination."""

    readers: PropertyProbe = field(default_factory=PropertyProbe)

    def __call__(self, view: View, *, seed: int = 0) -> Float[Tensor, "n c"]:
        return describe(self.readers.read(view, seed)).cpu()

    def score(self, answers: Tensor, truth: Images, gallery: Images, public: Images) -> Mapping[str, Tensor]:
        """Whether every answer is right, and 1 − ½ Σ_c (P(c|z) − [c is true])²: one less half the Brier score."""
        true = place(true_answers(truth, public))
        wrong = (answers - F.one_hot(true, answers.shape[1])).square().sum(1)
        return {"all_right": (answers.argmax(1) == true).float(), "quadratic_score": 1 - wrong / 2}

    def chance(self, truth: Images, gallery: Images, public: Images) -> Mapping[str, float]:
        """What the frequencies among public images score, and so the combination that is most common there."""
        prior = frequencies(true_answers(public, public)).expand(len(truth), -1)
        return {name: values.mean().item() for name, values in self.score(prior, truth, gallery, public).items()}
