"""A second place for tensors on a machine that has none: data stay in memory, but may not meet what lies elsewhere.

Registered as torch's spare backend, it obeys CUDA's rules: all tensors of an operation lie in one place, except numbers
(no dimensions) in elementwise ones and the indices of an indexed tensor; it has random numbers of its own; only a copy
leads out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "elsewhere"

aten = torch.ops.aten
CROSSING = {aten._to_copy.default, aten.copy_.default, aten._local_scalar_dense.default}
INDEXED = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default}


class Draws:
    """The random numbers of that place, as torch asks a backend for them."""

    def __init__(self) -> None:
        self.state = torch.Generator().manual_seed(0).get_state()

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def _is_in_bad_fork(self) -> bool:
        return False

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]

    def manual_seed_all(self, seed: int) -> None:
        self.state = torch.Generator().manual_seed(seed).get_state()

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        return self.state.clone()

    def set_rng_state(self, state: torch.Tensor, device: Any = None) -> None:
        self.state = state.clone()

    @contextmanager
    def used(self) -> Iterator[None]:
        """Whatever is drawn meanwhile is drawn from here."""
        here = torch.get_rng_state()
        torch.set_rng_state(self.state)
        try:
            yield
        finally:
            self.state = torch.get_rng_state()
            torch.set_rng_state(here)


DRAWS = Draws()
_setup_privateuseone_for_python_backend(NAME, DRAWS)
ELSEWHERE = torch.device(NAME, 0)


class Elsewhere(torch.Tensor):
    """A tensor that says it lies elsewhere; `held` are its data."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> Elsewhere:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=ELSEWHERE,
        )
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return perform(func, args, kwargs or {})

    def tolist(self) -> list[Any]:
        """Torch refuses it to subclasses, though a backend may do it."""
        return self.held.tolist()

    def __repr__(self) -> str:
        return f"{self.held!r} elsewhere"


class Watch(TorchDispatchMode):
    """While it lasts, what is made elsewhere is made there."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return perform(func, args, kwargs or {})


def perform(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Do one operation where its tensors lie, if they lie in one place."""
    asked = kwargs.get("device")
    there = lies_elsewhere(func, args, kwargs) if asked is None else torch.device(asked).type == NAME
    bare_args, bare_kwargs = each(bare, args), {name: each(bare, value) for name, value in kwargs.items()}
    if not there:
        return func(*bare_args, **bare_kwargs)
    if asked is not None:
        bare_kwargs["device"] = torch.device("cpu")
    if (generator := kwargs.get("generator")) is not None:
        raise RuntimeError(f"{func}: expected a generator of {NAME} but found one of {generator.device}")
    with DRAWS.used() if torch.Tag.nondeterministic_seeded in func.tags else nullcontext():
        out = each(Elsewhere, func(*bare_args, **bare_kwargs))
    return return_and_correct_aliasing(func, args, kwargs, out) if shares(func) else out


@cache
def shares(func: Any) -> bool:
    """Whether an operation changes a tensor, or returns a view of one."""
    return any(argument.alias_info is not None for argument in func._schema.arguments)


def lies_elsewhere(func: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    """Where an operation happens; an error if its tensors lie in two places."""
    tensors = tensors_in((args, tuple(kwargs.values())))
    if func in INDEXED and isinstance(args[0], Elsewhere):
        tensors = [args[0], *tensors_in(args[2:])]  # indices may lie anywhere
    if func in CROSSING:
        return isinstance(tensors[0], Elsewhere) and func is not aten._local_scalar_dense.default
    there = [isinstance(tensor, Elsewhere) for tensor in tensors]
    if any(there) and not all(there):
        numbers = func in INDEXED or torch.Tag.pointwise in func.tags
        here = [tensor for tensor in tensors if not isinstance(tensor, Elsewhere)]
        if not numbers or any(tensor.ndim for tensor in here) or writes_here(func, args):
            raise RuntimeError(f"{func}: expected all tensors in one place, but found {NAME} and cpu")
    return any(there)


def writes_here(func: Any, args: Any) -> bool:
    """Whether the first argument would be changed, and is not elsewhere."""
    alias = func._schema.arguments[0].alias_info
    return alias is not None and alias.is_write and not isinstance(args[0], Elsewhere)


def bare(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.held if isinstance(tensor, Elsewhere) else tensor


def each(change: Callable[[torch.Tensor], Any], value: Any) -> Any:
    """The same arguments or results, with every tensor in them changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    return type(value)(each(change, part) for part in value) if type(value) in (list, tuple) else value


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Every tensor among arguments."""
    found: list[torch.Tensor] = []
    each(found.append, value)
    return found


def fill(made: Elsewhere, source: torch.Tensor) -> Elsewhere:
    made.held.copy_(source)
    return made


# torch.tensor(…, device=…) makes and fills its tensor behind the back of any watch
torch.library.impl("aten::empty_strided", "PrivateUse1")(
    lambda size, stride, *, dtype=None, **_: Elsewhere(torch.empty_strided(size, stride, dtype=dtype))
)
torch.library.impl("aten::_copy_from", "PrivateUse1")(lambda source, made, _=False: fill(made, source))


@contextmanager
def elsewhere() -> Iterator[torch.device]:
    """While it lasts, there is such a place; a module that moves there keeps its parameters, as it does for CUDA."""
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        with Watch(), patch.object(torch._VF, "gru_cell", gru_cell, create=True):
            yield ELSEWHERE
    finally:
        torch.__future__.set_swap_module_params_on_conversion(before)


def gru_cell(x, h, w_x, w_h, b_x, b_h):
    """Away from the CPU, torch has one kernel for all of this, which the CPU lacks."""
    (reset, update, new), (h_reset, h_update, h_new) = (
        F.linear(value, weight, bias).chunk(3, 1) for value, weight, bias in ((x, w_x, b_x), (h, w_h, b_h))
    )
    candidate = torch.tanh(new + torch.sigmoid(reset + h_reset) * h_new)
    return candidate + torch.sigmoid(update + h_update) * (h - candidate)
