"""Read the values of a pickle without executing it: nothing that it names is imported or called.

CIFAR's "python version" is pickled. Dictionaries, lists, numbers, text and integer arrays are read; an array is
recognised by the names of numpy's own constructors, for which functions of this file do the work.
"""

import io
import math
import pickle
import pickletools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

INTEGERS = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8")
INTEGER_STATES = [(order, None, None, None, -1, -1, 0) for order in ("|", "<", ">", "=", b"|", b"<", b">", b"=")]
PLAIN = (str, bytes, bytearray, int, float, type(None))
FORBIDDEN = {"INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4", "EMPTY_SET", "ADDITEMS", "FROZENSET"}
"""Instructions that make objects of a class, or sets, whose members are hashed."""


def loads(data: bytes) -> Any:
    """The value of a pickle made of plain values and integer arrays; anything else is a ValueError.

    Python 2 strings come back as bytes, as with `encoding="bytes"`.
    """
    try:
        for opcode, _, _ in pickletools.genops(data):  # which also refuses lengths beyond the end of the data
            if opcode.name in FORBIDDEN:
                raise ValueError(f"the instruction {opcode.name} is not allowed")
        value = Reader(io.BytesIO(data), encoding="bytes").load()
        check_value(value, set(), set())
        return value
    except Exception as error:  # whatever a hostile file provokes in Python's reader
        raise ValueError(f"this pickle is refused ({error}): only plain values and integer arrays are read") from error


PythonReader: Any = pickle._Unpickler  # the reader that is written in Python, whose every instruction can be replaced


def with_simple_keys(instruction: Callable[[Any], None], keys: slice) -> Callable[[Any], None]:
    """The instruction, if these places of the stack hold nothing nested, which it can take forever to hash."""

    def checked(reader: Any) -> None:
        if not all(isinstance(key, str | bytes | int) for key in reader.stack[keys]):
            raise ValueError("it sets items of something other than a dictionary with simple keys")
        instruction(reader)

    return checked


class Reader(PythonReader):
    """Python's own reader, with our functions for all names, simple keys, and state for integer arrays only."""

    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" not in NAMES:
            raise ValueError(f"it names {module}.{name}")
        return NAMES[f"{module}.{name}"]

    def build(self) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if isinstance(target, np.ndarray) and target.dtype == NEW:
            _, shape, kind, by_column, content = state
            check_array(shape, kind, content)
            state = (1, shape, kind, bool(by_column), bytes(content))
        elif not isinstance(target, np.dtype) or state[1:] not in INTEGER_STATES:
            raise ValueError("it sets the state of something other than a new integer array")
        self.stack[-1].__setstate__(state)

    dispatch: ClassVar[dict[int, Any]] = PythonReader.dispatch | {
        pickle.BUILD[0]: build,
        pickle.SETITEM[0]: with_simple_keys(PythonReader.load_setitem, slice(-2, -1)),
        pickle.SETITEMS[0]: with_simple_keys(PythonReader.load_setitems, slice(None, None, 2)),
        pickle.DICT[0]: with_simple_keys(PythonReader.load_dict, slice(None, None, 2)),
    }


def check_array(shape: Any, kind: Any, content: Any) -> None:
    if not isinstance(kind, np.dtype) or kind.kind not in "iu":
        raise ValueError(f"an array of {kind} is not an integer array")
    if not all(type(length) is int and length >= 0 for length in shape):
        raise ValueError(f"an array has shape {shape}")
    if not isinstance(content, bytes | bytearray) or math.prod(shape) * kind.itemsize != len(content):
        raise ValueError(f"an array of shape {shape} comes with another number of bytes")


def check_value(value: Any, inside: set[int], done: set[int]) -> None:
    """Refuse what is left over of names and types, unfinished arrays, and a value that contains itself."""
    if isinstance(value, PLAIN) or id(value) in done or (isinstance(value, np.ndarray) and value.dtype.kind in "iu"):
        return
    if not isinstance(value, dict | list | tuple) or id(value) in inside:
        raise ValueError("a value contains itself, or a name or an unfinished array is left over")
    inside.add(id(value))
    for item in value.values() if isinstance(value, dict) else value:
        check_value(item, inside, done)
    inside.remove(id(value))
    done.add(id(value))


def text_of(value: str | bytes) -> str:
    """Text, whichever way Python 2 or 3 wrote it."""
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _integer(code: str | bytes, *_: Any) -> np.dtype:
    if text_of(code) not in INTEGERS:
        raise ValueError(f"an array of {code!r} is not an integer array")
    return np.dtype(text_of(code), copy=True)


def _from_buffer(content: bytes, kind: np.dtype, shape: tuple[int, ...], order: Any, *_: Any) -> np.ndarray:
    check_array(shape, kind, content)
    return np.frombuffer(content, kind).reshape(shape, order=order)


def _encode(text: str, encoding: str | bytes) -> bytes:
    if text_of(encoding) != "latin1":
        raise ValueError(f"it encodes text as {encoding!r}")
    return text.encode("latin-1")


NEW = np.dtype("V1")
NAMES: dict[str, Any] = {
    "numpy.ndarray": object(),
    "numpy.dtype": _integer,
    "numpy.core.multiarray._reconstruct": lambda *_: np.empty(0, NEW),
    "numpy._core.multiarray._reconstruct": lambda *_: np.empty(0, NEW),
    "numpy.core.numeric._frombuffer": _from_buffer,
    "numpy._core.numeric._frombuffer": _from_buffer,
    "_codecs.encode": _encode,  # how protocol 2 writes bytes
    "__builtin__.bytes": lambda: b"",
}
