"""Tensors of the Open Inference Protocol: values that are checked before anything computes with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from attcem.ship.artifact import Artifact

DTYPES: dict[str, np.dtype] = {"FP32": np.dtype("<f4"), "UINT8": np.dtype("u1")}
DATATYPES = {"float32": "FP32", "uint8": "UINT8"}
NUMBERS: dict[str, set[type]] = {"FP32": {int, float}, "UINT8": {int}}


class Refused(ValueError):
    """A request that is not served: the HTTP status says whose fault it is, the text what to do about it."""

    def __init__(self, reason: str, status: int = 400, wait: float | None = None) -> None:
        super().__init__(reason)
        self.status, self.wait = status, wait


@dataclass(frozen=True)
class TensorSpec:
    """What a half takes or gives: any number of pictures, each of this shape."""

    name: str
    datatype: str
    shape: tuple[int, ...]

    @property
    def metadata(self) -> dict[str, Any]:
        """As the protocol describes a tensor; −1 stands for any number of pictures."""
        return {"name": self.name, "datatype": self.datatype, "shape": [-1, *self.shape]}


@dataclass(frozen=True)
class Signature:
    """What the cloud's half takes and gives, and for how many pictures at once."""

    sent: TensorSpec
    logits: TensorSpec
    most: int

    @classmethod
    def of(cls, artifact: Artifact, most: int) -> Signature:
        sent = TensorSpec("sent", DATATYPES[artifact.wire.dtype], tuple(artifact.wire.shape))
        return cls(sent, TensorSpec("logits", "FP32", (len(artifact.picture.classes),)), most)

    def check(self, name: Any, datatype: Any, shape: Any) -> tuple[int, ...]:
        """The shape of a described input, if it is the one that the half takes."""
        spec = self.sent
        if name != spec.name:
            raise Refused(f"the input {str(name)[:60]!r} is unknown: send {spec.name!r}")
        if datatype != spec.datatype:
            raise Refused(f"{spec.name} has datatype {str(datatype)[:20]!r}: send {spec.datatype}")
        if not isinstance(shape, Sequence) or any(type(size) is not int for size in shape):
            raise Refused(f"the shape of {spec.name} is no list of whole numbers: send {self.wanted}")
        if len(shape) != 1 + len(spec.shape) or tuple(shape[1:]) != spec.shape or shape[0] < 1:
            raise Refused(f"{spec.name} has shape {str(list(shape))[:60]}: send {self.wanted}")
        if shape[0] > self.most:
            raise Refused(f"{str(shape[0])[:20]} pictures in one request: send at most {self.most}", 413)
        return tuple(shape)

    @property
    def wanted(self) -> str:
        return f"[pictures, {', '.join(map(str, self.sent.shape))}]"


def from_bytes(spec: TensorSpec, shape: tuple[int, ...], content: bytes | memoryview) -> np.ndarray:
    """Values as the binary extension and raw_input_contents send them: little endian, row by row."""
    dtype = DTYPES[spec.datatype]
    if len(content) != math.prod(shape) * dtype.itemsize:
        wanted = f"shape {list(shape)} of {spec.datatype} has {math.prod(shape) * dtype.itemsize}"
        raise Refused(f"{spec.name} has {len(content)} bytes, and {wanted}: send as many")
    return finite(spec, np.frombuffer(content, dtype).reshape(shape))


def from_numbers(spec: TensorSpec, shape: tuple[int, ...], data: Any) -> np.ndarray:
    """Values from a list of numbers, flat or nested as the shape says."""
    flat = flattened(spec, shape, data)
    if len(flat) != math.prod(shape):
        raise Refused(f"{spec.name} has {len(flat)} numbers, and shape {list(shape)} has {math.prod(shape)}")
    if not set(map(type, flat)) <= NUMBERS[spec.datatype]:
        raise Refused(f"{spec.name} holds something that is no number of type {spec.datatype}")
    if spec.datatype == "UINT8" and not (min(flat) >= 0 and max(flat) <= 255):
        raise Refused(f"{spec.name} holds a number that is no byte: send 0 to 255")
    try:
        with np.errstate(over="ignore"):
            return finite(spec, np.array(flat, DTYPES[spec.datatype]).reshape(shape))
    except OverflowError:
        raise Refused(f"{spec.name} holds a number that is too large for {spec.datatype}") from None


def flattened(spec: TensorSpec, shape: tuple[int, ...], data: Any) -> list[Any]:
    """A flat list of what a list holds that is flat or nested as deep as the shape has dimensions."""
    if not isinstance(data, list):
        raise Refused(f"the data of {spec.name} is no list: send the numbers row by row")
    if not data or not isinstance(data[0], list):
        return data
    for size in shape[1:]:
        if not all(isinstance(row, list) and len(row) == size for row in data):
            raise Refused(f"the data of {spec.name} is not nested as its shape {list(shape)}: send a flat list")
        data = list(chain.from_iterable(data))
    return data


def finite(spec: TensorSpec, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise Refused(f"{spec.name} holds NaN or Inf: send finite numbers, which is all that a device releases")
    return values
