"""Were the attacks themselves adequate? A flag is a reason to doubt the numbers."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attcem.attacks.base import Attack, Reconstruction
from attcem.attacks.decoder import sizes

LITTLE = 0.01  # share of the worst case that attacks which were cut short may still take off it, before that is said


@dataclass(frozen=True)
class Evidence:
    """What the checks look at: the attacks, their guesses and errors, and what is known of the victim."""

    suite: Mapping[str, Attack]
    guesses: Mapping[str, Reconstruction]
    errors: Mapping[str, Float[Tensor, " n"]]  # MSE of every image; NaN where an attack left it out
    accuracy: float
    classes: int
    undefended: bool
    frozen: bool = False  # whether a release that should be random came out the same twice

    def mean(self, name: str, first: int | None = None) -> float:
        return self.errors[name][:first].nanmean().item()

    def best(self, names: list[str], first: int | None = None) -> float:
        return min(self.mean(name, first=first) for name in names)

    def once(self) -> list[str]:
        """The attacks that count for the worst case."""
        return [name for name, attack in self.suite.items() if attack.observations == 1]


def cut_short(seen: Evidence) -> list[str]:
    """Attacks that flag themselves, most often because their own loss was still falling, where it may matter.

    It may if doubling their effort, should that gain what the last doubling did, would lower the worst case; those that
    add less to this than the average attack are not named. An attack that cannot tell its gain is always heard.
    """
    flagged = {name: seen.guesses[name] for name in seen.suite if seen.guesses[name].flags}
    shares = expected_falls(seen, {name: guess.gain for name, guess in flagged.items() if guess.gain is not None})
    total = sum(shares.values())
    flags: dict[str, list[str]] = {}
    for name, guess in flagged.items():
        matters = total > LITTLE and shares.get(name, 0.0) * len(shares) >= total
        words = f" (about {total:.0%} off the worst-case MSE if doubling gains as much again)" * matters
        for flag in guess.flags if matters or guess.gain is None else []:
            flags.setdefault(flag + words, []).append(name)
    return [f"{', '.join(names)}: {flag}" for flag, names in flags.items()]


def expected_falls(seen: Evidence, gains: Mapping[str, float]) -> dict[str, float]:
    """What each attack would take off the worst case, as shares of it, if all its errors fell by its gain."""
    names = seen.once()
    now = torch.stack([seen.errors[name] for name in names])
    then = now * (1 - now.new_tensor([gains.get(name, 0.0) for name in names]))[:, None]
    (worst, _), (lower, winner) = (part.nan_to_num(nan=torch.inf).min(0) for part in (now, then))
    fall = torch.where(worst.isfinite(), worst - lower, 0.0) / worst[worst.isfinite()].sum().clamp_min(1e-12)
    return {name: fall[winner == place].sum().item() for place, name in enumerate(names)}


def failed(seen: Evidence) -> list[str]:
    worst, free = seen.best(seen.once()), seen.mean("mean_image")
    if worst > 1.02 * free:
        return [f"the attacks (MSE {worst:.4f}) do worse than the mean image ({free:.4f}): they failed"]
    if seen.undefended and worst > 0.5 * free:
        return [f"the attacks barely break the undefended network (MSE {worst:.4f}): too weak to judge by"]
    return []


def loses_undefended(seen: Evidence) -> list[str]:
    free = {name: seen.mean("mean_image", first=len(seen.guesses[name].images)) for name in seen.suite}
    broken = ", ".join(name for name in seen.suite if seen.mean(name) > free[name])
    words = f"{broken}: worse than the mean image on an undefended network, so not to be relied on"
    return [words] * bool(seen.undefended and broken)


def larger_is_better(seen: Evidence) -> list[str]:
    decoders = sizes(seen.suite)
    if len(decoders) < 2:
        return []
    *smaller, largest = sorted(decoders, key=lambda name: decoders[name].weights)
    gain = 1 - seen.mean(largest) / seen.best(smaller)
    return [f"{largest} beats every smaller decoder by {gain:.0%}: a still larger one may find more"] * (gain > 0.05)


def stuck_at_linear(seen: Evidence) -> list[str]:
    decoders = list(sizes(seen.suite))
    if "linear" not in seen.suite or not decoders or seen.best(decoders) > 0.95 * seen.mean("linear"):
        return []
    begun = seen.mean("linear")
    stuck = [name for name in decoders if seen.mean(name) > 0.99 * begun]
    return [f"{name}: no better than the linear guess (MSE {begun:.4f}), it learned too little" for name in stuck]


def masked_gradients(seen: Evidence) -> list[str]:
    with_gradients = [name for name in seen.once() if "gradients" in seen.suite[name].needs]
    queries = [name for name in seen.once() if seen.suite[name].needs <= {"public", "queries"}]
    if not with_gradients or not queries:
        return []
    first = min(len(seen.guesses[name].images) for name in with_gradients)
    white, query = seen.best(with_gradients, first), seen.best(queries, first)
    words = f"attacks with gradients (MSE {white:.4f}) do worse than those without ({query:.4f}) on the same images"
    return [f"{words}: gradients may be masked, or the optimisation is too short"] * (white > 1.05 * query)


def blind_is_better(seen: Evidence) -> list[str]:
    blind = [name for name in seen.once() if "queries" not in seen.suite[name].needs]
    others = [name for name in seen.once() if name not in blind]
    if not blind or not others or seen.best(blind) > 0.98 * seen.best(others):
        return []
    return [f"{', '.join(blind)}, without access to the device, beats the attacks that query it: those are too weak"]


CHECKS = (cut_short, failed, loses_undefended, larger_is_better, stuck_at_linear, masked_gradients, blind_is_better)


def adequacy_flags(seen: Evidence) -> list[str]:
    """Sentences for the top of the report: of the attacks, then of the victim; none if there is nothing to doubt."""
    flags = [flag for check in CHECKS for flag in check(seen)]
    flags += ["the same image was released twice without any difference: the noise is missing"] * seen.frozen
    words = f"accuracy {seen.accuracy:.3f} is near chance ({1 / seen.classes:.3f}): the network does not serve its task"
    return flags + [words] * (seen.accuracy < 2 / seen.classes)
