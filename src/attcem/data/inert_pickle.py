"""Read the values of a pickle without executing it: nothing that it names is imported or called.

CIFAR's "python version" is pickled. We walk its opcodes and allow dictionaries, lists, numbers, text and integer
arrays; an array is recognised by the names of numpy's own constructors, for which our stand-ins do the work.
"""

import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attcem.data.inert_arrays import STAND_INS, Grid, Kind, text_of


@dataclass(frozen=True)
class Name:
    """Something that the pickle refers to by module and name: text, never an import."""

    text: str


def loads(data: bytes) -> Any:
    """The value of a pickle made of plain values and integer arrays; anything else is a ValueError.

    Python 2 strings come back as bytes, as with `encoding="bytes"`.
    """
    machine = Machine()
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name not in OPCODES:
                raise ValueError(f"the instruction {opcode.name} is not allowed")
            OPCODES[opcode.name](machine, argument)
        return Settle().value(machine.stack.pop())
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"this pickle is refused ({error}): only plain values and integer arrays are read") from error


class Machine:
    """The pickle machine: a stack, its marks, and a memo."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def push(self, value: Any) -> None:
        """Put a value on the stack."""
        self.stack.append(value)

    def since_mark(self) -> list[Any]:
        """Take everything above the latest mark."""
        start = self.marks.pop()
        values = self.stack[start:]
        del self.stack[start:]
        return values

    def last(self, count: int) -> tuple[Any, ...]:
        """Take the last few values as a tuple."""
        return tuple([self.stack.pop() for _ in range(count)][::-1])

    def extend(self, values: list[Any]) -> None:
        """Append values to the list on top."""
        if not isinstance(self.stack[-1], list):
            raise ValueError("it appends to something other than a list")
        self.stack[-1].extend(values)

    def update(self, values: list[Any]) -> None:
        """Add keys and values in turn to the dictionary on top; hashing nested keys can explode: simple ones only."""
        if not isinstance(self.stack[-1], dict) or not all(isinstance(key, str | bytes | int) for key in values[::2]):
            raise ValueError("it sets items of something other than a dictionary with simple keys")
        self.stack[-1].update(zip(values[::2], values[1::2], strict=True))

    def dictionary(self, values: list[Any]) -> None:
        """Push a dictionary made of keys and values in turn."""
        self.push({})
        self.update(values)

    def name(self, text: str) -> None:
        """Push a name, when it is one of the few that arrays need."""
        if text not in STAND_INS:
            raise ValueError(f"it names {text}")
        self.push(Name(text))

    def stack_name(self) -> None:
        """Push the name whose module and attribute lie on the stack."""
        self.name(".".join(text_of(part) for part in self.last(2)))

    def reduce(self) -> None:
        """Let our stand-in make the value that the named callable would make."""
        function, arguments = self.last(2)
        if not isinstance(function, Name):
            raise ValueError("it calls something that is not a name")
        self.push(STAND_INS[function.text](*arguments))

    def build(self) -> None:
        """Fill in a stand-in's state."""
        state = self.stack.pop()
        target = self.stack[-1]
        if not isinstance(target, Kind | Grid):
            raise ValueError("it sets the state of something other than an integer array")
        target.fill(state)


class Settle:
    """Replace stand-ins by their arrays in a nested value, each value once, refusing one that contains itself."""

    def __init__(self) -> None:
        self.done: dict[int, Any] = {}

    def value(self, value: Any) -> Any:
        """The value with arrays in place of stand-ins."""
        if isinstance(value, Name | Kind) or (isinstance(value, Grid) and value.array is None):
            raise ValueError("a name or an unfinished array is left over")
        if isinstance(value, Grid):
            return value.array
        if not isinstance(value, dict | list | tuple):
            return value
        if id(value) not in self.done:
            self.done[id(value)] = self
            values = value.items() if isinstance(value, dict) else value
            settled = [
                (item[0], self.value(item[1])) if isinstance(value, dict) else self.value(item) for item in values
            ]
            self.done[id(value)] = type(value)(settled)
        if self.done[id(value)] is self:
            raise ValueError("a value contains itself")
        return self.done[id(value)]


Operation = Callable[[Machine, Any], None]
PLAIN = "INT LONG BININT BININT1 BININT2 LONG1 LONG4 FLOAT BINFLOAT UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8"
BYTES = "BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8"
OPCODES: dict[str, Operation] = {
    **dict.fromkeys(f"{PLAIN} {BYTES}".split(), Machine.push),
    **dict.fromkeys(("STRING", "BINSTRING", "SHORT_BINSTRING"), lambda m, text: m.push(text.encode("latin-1"))),
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), lambda m, _: None),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), lambda m, key: m.memo.update({key: m.stack[-1]})),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda m, key: m.push(m.memo[key])),
    "MEMOIZE": lambda m, _: m.memo.update({len(m.memo): m.stack[-1]}),
    "NONE": lambda m, _: m.push(None),
    "NEWTRUE": lambda m, _: m.push(True),
    "NEWFALSE": lambda m, _: m.push(False),
    "MARK": lambda m, _: m.marks.append(len(m.stack)),
    "EMPTY_TUPLE": lambda m, _: m.push(()),
    "TUPLE": lambda m, _: m.push(tuple(m.since_mark())),
    "TUPLE1": lambda m, _: m.push(m.last(1)),
    "TUPLE2": lambda m, _: m.push(m.last(2)),
    "TUPLE3": lambda m, _: m.push(m.last(3)),
    "EMPTY_LIST": lambda m, _: m.push([]),
    "LIST": lambda m, _: m.push(m.since_mark()),
    "APPEND": lambda m, _: m.extend([m.stack.pop()]),
    "APPENDS": lambda m, _: m.extend(m.since_mark()),
    "EMPTY_DICT": lambda m, _: m.push({}),
    "DICT": lambda m, _: m.dictionary(m.since_mark()),
    "SETITEM": lambda m, _: m.update(list(m.last(2))),
    "SETITEMS": lambda m, _: m.update(m.since_mark()),
    "GLOBAL": lambda m, text: m.name(text.replace(" ", ".")),
    "STACK_GLOBAL": lambda m, _: m.stack_name(),
    "REDUCE": lambda m, _: m.reduce(),
    "BUILD": lambda m, _: m.build(),
}
