"""Modules and optimisers as the flat tensors and plain numbers of a checkpoint, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


def pack(modules: Mapping[str, torch.nn.Module], optimiser: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict]:
    """All tensors of the modules and the optimiser under flat names, and the optimiser's plain numbers."""
    tensors = {
        f"{prefix}.{name}": tensor for prefix, module in modules.items() for name, tensor in module.state_dict().items()
    }
    plain: dict[str, Any] = {}
    for index, slots in optimiser.state_dict()["state"].items():
        for slot, value in slots.items():
            if isinstance(value, Tensor):
                tensors[f"optimiser.{index}.{slot}"] = value
            else:
                plain[f"{index}.{slot}"] = value
    return tensors, plain


def unpack_modules(modules: Mapping[str, torch.nn.Module], tensors: Mapping[str, Tensor]) -> None:
    """Load each module's tensors back, strictly."""
    for prefix, module in modules.items():
        own = {name.removeprefix(f"{prefix}."): t for name, t in tensors.items() if name.startswith(f"{prefix}.")}
        try:
            module.load_state_dict(own)
        except RuntimeError as error:
            raise ValueError(f"the checkpoint does not fit this {prefix}: {' '.join(str(error).split())}") from None


def unpack_optimiser(optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor], plain: Mapping[str, Any]) -> None:
    """Load the optimiser's state back; learning rates are set by the schedule."""
    slots: dict[int, dict[str, Any]] = {}
    flat = {name.removeprefix("optimiser."): t for name, t in tensors.items() if name.startswith("optimiser.")}
    for name, value in (flat | dict(plain)).items():
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
        if not fits or ("step" in kept and not is_count(kept["step"])):
            raise ValueError("the checkpoint does not fit this optimiser: restore it from a copy, or train again")


def is_count(steps: Any) -> bool:
    """Whether an optimiser can have made so many steps."""
    return isinstance(steps, Tensor | int | float) and torch.as_tensor(steps).ndim == 0 and bool(steps >= 0)
