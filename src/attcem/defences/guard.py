"""The guard of a device: defences as the links of one chain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor, nn

from attcem.defences.base import NEEDS, Defence, Stage
from attcem.links import number
from attcem.maths import DISTRIBUTIONS
from attcem.naming import look_up
from attcem.types import Batch, Latent, Released


class Guard(nn.Module):
    """Holds defences and releases through them, in the order of their stages; the trainer asks each for its penalty.

    A defence may be a link of several guards, which then share its state; it has a name in each of them.
    """

    def __init__(self, *parts: Defence | Guard) -> None:
        super().__init__()
        self.chained = nn.ModuleList()
        for part in parts:
            self.chained.extend(part.chained if isinstance(part, Guard) else [part])
        for link in self.chained:
            if not isinstance(link, Defence):
                raise ValueError(f"a guard holds defences, not a {type(link).__name__}: derive it from attcem.Defence")
            for need in link.needs:
                look_up(f"need of {link.kind}", need, dict.fromkeys(NEEDS))
            if link.distribution is not None:
                look_up(f"distribution of {link.kind}", link.distribution, DISTRIBUTIONS)
        if len(set(self.chained)) < len(self.chained):
            raise ValueError("a guard holds the same defence twice: make a second one, as in Noise(0.1) + Noise(0.1)")

    @classmethod
    def of(cls, guard: Guard | Defence) -> Guard:
        return guard if isinstance(guard, Guard) else cls(guard)

    @property
    def named(self) -> dict[str, Defence]:
        """Name → link in release order: the first of a kind that was added is called `noise`, the next `noise-2`."""
        chained: list[Defence] = list(self.chained)  # type: ignore[arg-type]
        named = zip(number(link.kind for link in chained), chained, strict=True)
        return dict(sorted(named, key=lambda link: link[1].stage))

    @property
    def links(self) -> tuple[Defence, ...]:
        """The defences in release order; those of one stage keep the order they were added in."""
        return tuple(self.named.values())

    @property
    def sigma(self) -> float:
        """Standard deviation of Gaussian release noise that is sure: variances add, up to a link that hides them."""
        runs = [0.0]
        for link in self.links:
            runs += [0.0] * link.hides_earlier_noise
            runs[-1] += link.sigma**2
        return max(runs) ** 0.5

    @property
    def distributions(self) -> dict[str, str]:
        """Name of a link → the distribution of the random numbers that its release takes."""
        return {name: link.distribution for name, link in self.named.items() if link.distribution is not None}

    @property
    def flags(self) -> list[str]:
        return [f"{name}: {flag}" for name, link in self.named.items() for flag in link.flags]

    def setup(self, *, latent: Sequence[int], classes: int, sigma: float) -> None:
        for link in self.links:
            link.release_all = self.release
            link.setup(latent=latent, classes=classes, sigma=sigma)

    def attach(self, encoder: nn.Module, borrow: Callable[[str], None] | None = None) -> None:
        for link in self.links:
            link.attach(encoder, borrow)

    def release(self, z: Latent, noise: Mapping[str, Tensor] | None = None) -> Released:
        """What leaves the device, with fresh random numbers, or with those given for each link that draws any."""
        for name, link in self.named.items():
            given = [] if noise is None or link.distribution is None else [noise[name]]
            z = link.release(z, *given)
        return z

    def pieces(self, z: Latent) -> dict[str, Tensor]:
        """Those of the last link that changes what is sent, rounding aside: a later one would hide them."""
        changing = [link for link in self.links if type(link).release is not Defence.release]
        *before, last = [link for link in changing if link.stage is not Stage.WIRE] or [Defence()]
        for link in before:
            z = link.release(z)
        return last.pieces(z)

    def draw(self, z: Latent) -> dict[str, Tensor]:
        """Fresh random numbers for a release of these latents, for each link that takes any."""
        return {name: DISTRIBUTIONS[law](z) for name, law in self.distributions.items()}

    def observe(self, batch: Batch) -> None:
        for link in self.links:
            link.observe(batch)

    def __add__(self, other: Defence | Guard) -> Guard:
        return Guard(self, other)


def own_parameters(guard: Guard | Defence) -> list[nn.Parameter]:
    """What the trainer trains on task and penalty: all that ask for a gradient, so never an adversary's weights."""
    return [parameter for parameter in guard.parameters() if parameter.requires_grad]
