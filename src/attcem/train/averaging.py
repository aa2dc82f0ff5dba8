"""What clients have in common: the encoder and what the guard has learned, averaged by numbers of images."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from attcem.defences import Guard, own_parameters
from attcem.train.packing import under

Tensors = Mapping[str, Tensor]


def exchanged(encoder: nn.Module, guard: Guard) -> dict[str, Tensor]:
    """All that a client sends to be averaged, as it lies in memory: never a memory, an adversary or a cluster.

    These are the encoder's weights and running statistics, and those parameters of the guard that the trainer trains.
    """
    trained = {id(parameter) for parameter in own_parameters(guard)}
    weights = {f"encoder.{name}": tensor.detach() for name, tensor in encoder.state_dict().items()}
    learned = {f"guard.{name}": p.detach() for name, p in guard.named_parameters() if id(p) in trained}
    return weights | learned


def kept(guard: Guard) -> dict[str, Tensor]:
    """What stays with the client: all state of its guard that is not exchanged."""
    sent = exchanged(nn.Identity(), guard)
    return {name: tensor for name, tensor in guard.state_dict().items() if f"guard.{name}" not in sent}


def weighted_mean(states: Sequence[Tensors], images: Sequence[int]) -> dict[str, Tensor]:
    """Σ_i n_i θ_i / Σ_i n_i of every tensor, in double precision, counters rounded (FedAvg, McMahan et al. 2017)."""
    total = sum(images)
    if not total > 0:
        raise ValueError("nothing to average: nobody has learned from any image")
    mean = {}
    for name, like in states[0].items():
        parts = (count * state[name].double() for state, count in zip(states, images, strict=True))
        value = sum(parts, torch.zeros_like(like, dtype=torch.float64)) / total
        mean[name] = (value if like.is_floating_point() else value.round()).to(like.dtype)
    return mean


@torch.no_grad()
def copy_into(mine: Tensors, theirs: Tensors) -> None:
    for name, tensor in mine.items():
        tensor.copy_(theirs[name])


def restore_guards(guards: Sequence[Guard], deployed: Guard, tensors: Tensors) -> None:
    """Give clients' guards what all have learned, from the deployed one, and what each kept, from a checkpoint."""
    for number, guard in enumerate(guards):
        state = deployed.state_dict() | under(tensors, f"client.{number}.guard.")
        guard.load_state_dict({name: state[name] for name in guard.state_dict()})
