"""Can a penalty fall without the encoder? Its own parameters, trained alone on frozen latents, give the answer."""

import copy
from collections.abc import Mapping, Sequence

import torch

from attcem.defences import Surrogate, own_parameters
from attcem.train.learner import Learner
from attcem.train.prediction import clean_latents
from attcem.types import Batch

FROZEN = 32  # batches of latents on which a surrogate is tested
STEPS = 200
RATE = 3e-3


def falls_alone(untrained: Mapping[str, Surrogate], epoch: int, learner: Learner) -> dict[str, float]:
    """`surrogate_only` of those that begin to shape the encoder in this epoch, on clean latents of a learner."""
    falls = {}
    for name, surrogate in untrained.items():
        if surrogate.penalises and surrogate.warmup == epoch:
            some = learner.images[: FROZEN * learner.config.batch]
            latents = list(clean_latents(learner.model, some, learner.config.batch, learner.team))
            with torch.random.fork_rng():
                falls[name] = surrogate_only(surrogate, latents)
    return falls


def surrogate_only(surrogate: Surrogate, latents: Sequence[Batch], steps: int = STEPS) -> float:
    """1 − (value after) / (value before) training only the surrogate's own parameters; the latents never change.

    0 where it has no parameters. A value near 1 means that the penalty can vanish while the encoder leaks as before,
    unless the surrogate is an upper bound: then it is the slack that the attention removed.
    """
    alone = copy.deepcopy(surrogate)
    own = own_parameters(alone)
    before = mean_value(alone, latents)
    if not own or not before > 0:
        return 0.0
    optimiser = torch.optim.Adam(own, lr=RATE)
    alone.train()
    for step in range(steps):
        batch = latents[step % len(latents)]
        value = alone.value(batch)
        optimiser.zero_grad(set_to_none=True)
        if not (value.requires_grad and value.isfinite()):
            continue
        value.backward()
        optimiser.step()
        alone.observe(batch)
    return 1 - mean_value(alone, latents) / before


@torch.no_grad()
def mean_value(surrogate: Surrogate, latents: Sequence[Batch]) -> float:
    surrogate.eval()
    values = torch.stack([surrogate.value(batch) for batch in latents])
    return values[values.isfinite()].mean().item()


def honesty_flags(name: str, fall: float, bounds_information: bool) -> list[str]:
    """What a reader must know when the penalty fell by more than half on its own."""
    if not fall > 0.5:
        return []
    if bounds_information:
        return [f"{name}: attention alone removed {fall:.0%} of the bound, which stays an upper bound on what leaks"]
    return [
        f"{name}: its penalty fell by {fall:.0%} when only its own parameters were trained, on latents of the "
        "undefended network: a low penalty says nothing about what leaks"
    ]
