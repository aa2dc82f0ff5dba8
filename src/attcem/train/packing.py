"""Modules and optimisers as the flat tensors and plain numbers of a checkpoint, and back."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

Optimisers = Mapping[str, torch.optim.Optimizer]  # under the beginning of their names in a checkpoint


def pack(modules: Mapping[str, torch.nn.Module], optimisers: Optimisers) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """All tensors of the modules and the optimisers under flat names, and the optimisers' plain numbers."""
    tensors = {
        f"{prefix}.{name}": tensor for prefix, module in modules.items() for name, tensor in module.state_dict().items()
    }
    plain: dict[str, Any] = {}
    for owner, optimiser in optimisers.items():
        for index, slots in optimiser.state_dict()["state"].items():
            for slot, value in slots.items():
                if isinstance(value, Tensor):
                    tensors[f"{owner}optimiser.{index}.{slot}"] = value
                else:
                    plain[f"{owner}{index}.{slot}"] = value
    return tensors, plain


def under(named: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """The entries whose names begin so, without that beginning."""
    return {name.removeprefix(prefix): value for name, value in named.items() if name.startswith(prefix)}


def unpack_modules(modules: Mapping[str, torch.nn.Module], tensors: Mapping[str, Tensor]) -> None:
    """Load each module's tensors back, strictly."""
    for prefix, module in modules.items():
        try:
            module.load_state_dict(under(tensors, f"{prefix}."))
        except RuntimeError as error:
            raise ValueError(f"the checkpoint does not fit this {prefix}: {' '.join(str(error).split())}") from None


def unpack_optimisers(optimisers: Optimisers, tensors: Mapping[str, Tensor], plain: Mapping[str, Any]) -> None:
    """Load the optimisers' states back; learning rates are set by the schedule."""
    for owner, optimiser in optimisers.items():
        slots: dict[int, dict[str, Any]] = {}
        for name, value in (under(tensors, f"{owner}optimiser.") | under(plain, owner)).items():
            index, slot = name.split(".", 1)
            slots.setdefault(int(index), {})[slot] = value
        check_slots(slots, [parameter for group in optimiser.param_groups for parameter in group["params"]])
        try:
            optimiser.load_state_dict({"state": slots, "param_groups": optimiser.state_dict()["param_groups"]})
        except (KeyError, RuntimeError) as error:
            raise ValueError(f"the checkpoint does not fit this optimiser: {error}") from None


def check_slots(slots: Mapping[int, Mapping[str, Any]], parameters: Sequence[Tensor]) -> None:
    """Raise where an optimiser would remember things of other shapes than its parameters, or not the same of each."""
    same = len({frozenset(kept) for kept in slots.values()}) <= 1
    for index, kept in slots.items():
        shapes = {value.shape for value in kept.values() if isinstance(value, Tensor)}
        fits = same and index in range(len(parameters)) and shapes <= {parameters[index].shape, torch.Size()}
        steps = kept.get("step", 0)
        number = isinstance(steps, Tensor | int | float) and torch.as_tensor(steps).dtype != torch.bool
        if not (fits and number and torch.as_tensor(steps).ndim == 0 and steps >= 0):
            raise ValueError("the checkpoint does not fit this optimiser: restore it from a copy, or train again")
