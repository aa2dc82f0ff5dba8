"""The defence contract: four hooks with neutral defaults, and the chain that composes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from jaxtyping import Float
from torch import Tensor, nn

from attcem.links import number, snake_case
from attcem.types import Batch, Latent, Released


class Stage(IntEnum):
    """Where in the release chain a defence acts (maths §4): a chain always releases in this order.

    What a TRANSFORM does comes before any noise: the noise is then on the transformed latent, not on the encoder's.
    """

    TRANSFORM = 0
    NOISE = 1
    LOCAL_DP = 2
    DROPOUT = 3
    PRUNING = 4
    ADVERSARIAL = 5


class Defence(nn.Module):
    """Changes what leaves the device (`release`), how the encoder is trained (`penalty`), or both.

    `lam` weighs the penalty's gradient in the encoder, `warmup` is the number of epochs before it starts; one that
    `needs_noise` means nothing in a chain without Gaussian noise. One that must `weigh_own` has parameters that shape
    the release: they feel the weighted penalty, as the encoder does. Where one `bends` the latent before its own noise,
    that of earlier links is not added to it. A penalty that looks `through_encoder` sees latents that hang on the
    images, and is differentiated to the encoder's weights; `start_from` is a run whose encoder to begin with. The
    trainer keeps `progress` (share of training done) up to date, and sets `watched` for the few steps whose `readings`
    it will collect for the log. Its `kind` is its name in the table of defences, or its class's in snake_case;
    `strength` names the option that sets how hard it protects.
    """

    kind: str = "defence"
    strength: str = "lam"
    stage: Stage = Stage.ADVERSARIAL
    sigma: float = 0.0
    lam: float = 1.0
    warmup: int = 0
    needs_noise: bool = False
    weigh_own: bool = False
    bends: bool = False
    through_encoder: bool = False
    start_from: str = ""
    progress: float = 0.0
    watched: bool = False
    _name: str = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.kind = snake_case(cls.__name__)

    def __init__(self) -> None:
        super().__init__()
        self.readings: dict[str, Tensor] = {}
        self.counts: dict[str, Tensor] = {}
        """Figures of the batch just penalised: unlike readings, collected from every step."""
        self.lost = 0
        """How many penalties were not finite, and were replaced by zero."""

    @property
    def name(self) -> str:
        """What history, flags and explanations call it: its kind, counted from the second of a kind in its chain."""
        return self._name or self.kind

    def join(self, chain: Chain) -> None:
        """Learn which chain it is a link of, before `setup`: an adversary looks at what all links release together."""

    def setup(self, *, latent: Sequence[int], classes: int, sigma: float) -> None:
        """Make parameters for these shapes; called once, before the optimiser exists."""

    def attach(self, encoder: nn.Module, *, fresh: bool) -> None:
        """Meet the device's half before it is trained (`fresh`), or before its trained weights are loaded."""

    def own_parameters(self) -> list[nn.Parameter]:
        """What the trainer trains on task and penalty: all that ask for a gradient, so never an adversary's weights."""
        return [parameter for parameter in self.parameters() if parameter.requires_grad]

    def release(self, z: Latent) -> Released:
        """What leaves the device: in training, evaluation, attack and deployment alike."""
        return z

    def penalty(self, batch: Batch) -> Float[Tensor, ""]:
        """A scalar that the encoder is trained to make small; it sees the clean latents."""
        return batch.z.new_zeros(())

    def observe(self, batch: Batch) -> None:
        """Update own state after a training step: refit clusters, step an adversary."""

    def review(self, batches: Iterable[Batch]) -> None:
        """Look at all private images at an epoch's end, in evaluation mode; latents are computed as they are read."""

    @property
    def caveats(self) -> list[str]:
        """What a reader of the result must know about how training went."""
        return []

    def __add__(self, other: Defence) -> Chain:
        return Chain(self, other)

    @property
    def links(self) -> tuple[Defence, ...]:
        """The single defences that this one is made of."""
        return (self,)

    @property
    def penalises(self) -> bool:
        """Whether training it has anything to minimise."""
        return self.lam > 0 and type(self).penalty is not Defence.penalty


class Chain(Defence):
    """Several defences as one: released in the order of maths §4, penalised each with its own weight.

    A defence may be a link of several chains, which then share its state; each chain looks at it under its own name.
    """

    def __init__(self, *defences: Defence) -> None:
        super().__init__()
        self.chained = nn.ModuleList(link for defence in defences for link in defence.links)
        if len(set(self.chained)) < len(self.chained):
            raise ValueError("a chain holds the same defence twice: make a second one, as in Noise(0.1) + Noise(0.1)")
        self.named()

    def named(self) -> list[Defence]:
        """The links in the order they were added in, the first of a kind called `noise`, the next `noise-2`."""
        links: list[Defence] = list(self.chained)  # type: ignore[arg-type]
        for link, name in zip(links, number(link.kind for link in links), strict=True):
            link._name = name  # each time: another chain that shares the link may have called it otherwise
        return links

    @property
    def links(self) -> tuple[Defence, ...]:
        """The chain's links in release order; links of one stage keep the order they were added in."""
        return tuple(sorted(self.named(), key=lambda link: link.stage))

    @property
    def sigma(self) -> float:  # type: ignore[override]
        """Standard deviation of Gaussian release noise that is sure: variances add, up to a link that bends."""
        runs = [0.0]
        for link in self.links:
            runs += [0.0] * link.bends
            runs[-1] += link.sigma**2
        return max(runs) ** 0.5

    @property
    def penalises(self) -> bool:
        """Whether any link has something to minimise."""
        return any(link.penalises for link in self.links)

    def setup(self, *, latent: Sequence[int], classes: int, sigma: float) -> None:
        """Set up every link, each knowing the whole chain and its noise."""
        for link in self.links:
            link.join(self)
            link.setup(latent=latent, classes=classes, sigma=sigma)

    def attach(self, encoder: nn.Module, *, fresh: bool) -> None:
        """Let every link meet it."""
        for link in self.links:
            link.attach(encoder, fresh=fresh)

    def own_parameters(self) -> list[nn.Parameter]:
        """Those of every link, each once."""
        return list(dict.fromkeys(parameter for link in self.named() for parameter in link.own_parameters()))

    def release(self, z: Latent) -> Released:
        """Apply every link in order."""
        for link in self.links:
            z = link.release(z)
        return z

    def penalty(self, batch: Batch) -> Float[Tensor, ""]:
        """The weighted sum Σ λ_i · penalty_i, for reading; the trainer weighs each link's gradient itself."""
        total = batch.z.new_zeros(())
        for link in self.links:
            if link.penalises:
                total = total + link.lam * link.penalty(batch)
        return total

    def observe(self, batch: Batch) -> None:
        """Let every link look."""
        for link in self.links:
            link.observe(batch)

    def review(self, batches: Iterable[Batch]) -> None:
        """Let every link look at all images."""
        everything = list(batches)
        for link in self.links:
            link.review(everything)

    @property
    def caveats(self) -> list[str]:
        """What any link has to say."""
        return [caveat for link in self.links for caveat in link.caveats]


class Undefended(Defence):
    """Releases the clean latent: the baseline that every defence is measured against."""

    strength = ""
