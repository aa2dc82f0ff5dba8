"""Stand-ins for the numpy names inside a pickle: they make plain integer arrays and nothing else."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

INTEGER_CODES = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8")


@dataclass
class Kind:
    """Stands for a numpy dtype: an integer code such as u1, and a byte order that BUILD fills in."""

    code: str
    order: str = "|"

    def fill(self, state: tuple[Any, ...]) -> None:
        """Take the byte order; fields and subarrays are refused."""
        if state[2:5] != (None, None, None):
            raise ValueError("an array has fields")
        self.order = text_of(state[1])


@dataclass
class Grid:
    """Stands for a numpy array, which BUILD fills in."""

    array: np.ndarray | None = None

    def fill(self, state: tuple[Any, ...]) -> None:
        """Take shape, kind, order and content."""
        _, shape, kind, by_column, content = state
        self.array = _array(content, kind, shape, "F" if by_column else "C")


def text_of(value: str | bytes) -> str:
    """Text, whichever way Python 2 or 3 wrote it."""
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _array(content: bytes, kind: Kind, shape: tuple[int, ...], order: str) -> np.ndarray:
    if not isinstance(kind, Kind) or kind.code not in INTEGER_CODES or kind.order not in "|<>=":
        raise ValueError(f"an array of {kind} is not an integer array")
    if not all(isinstance(length, int) and length >= 0 for length in shape) or order not in ("C", "F"):
        raise ValueError(f"an array has shape {shape} and order {order!r}")
    if not isinstance(content, bytes | bytearray) or math.prod(shape) * int(kind.code[1]) != len(content):
        raise ValueError(f"an array of shape {shape} comes with another number of bytes")
    return np.frombuffer(content, dtype=np.dtype(kind.order + kind.code)).reshape(
        shape, order="F" if order == "F" else "C"
    )


def _encode(text: str, encoding: str) -> bytes:
    if text_of(encoding) != "latin1":
        raise ValueError(f"it encodes text as {encoding}")
    return text.encode("latin-1")


def _from_buffer(content: bytes, kind: Kind, shape: tuple[int, ...], order: str, *_: Any) -> Grid:
    return Grid(_array(content, kind, shape, text_of(order)))


def _not_called(*_: Any) -> Any:
    raise ValueError("it calls numpy.ndarray")


STAND_INS: dict[str, Callable[..., Any]] = {
    "numpy.ndarray": _not_called,
    "numpy.dtype": lambda code, *_: Kind(text_of(code)),
    "numpy.core.multiarray._reconstruct": lambda *_: Grid(),
    "numpy._core.multiarray._reconstruct": lambda *_: Grid(),
    "numpy.core.numeric._frombuffer": _from_buffer,
    "numpy._core.numeric._frombuffer": _from_buffer,
    "_codecs.encode": _encode,  # how protocol 2 writes bytes
    "__builtin__.bytes": lambda: b"",
}
