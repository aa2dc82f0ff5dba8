"""Names: one that is looked up wrongly is told which was probably meant, a new one must do as a folder's."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

T = TypeVar("T")

LONGEST = 200  # bytes of a name: a file system takes 255, and the seed and the digest of the settings come behind it


def nearest(name: str, known: Iterable[str]) -> str:
    """A sentence that names the closest of the known names, or all of them when none is close.

    >>> nearest("vgg11bn", ["vgg11", "vgg11_bn"])
    "did you mean 'vgg11_bn'?"
    """
    known = sorted(known)
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"choose from: {', '.join(known) or '(nothing)'}"


def look_up(kind: str, name: str, table: Mapping[str, T]) -> T:
    """The entry of a table, or a ValueError that names the nearest one."""
    if name not in table:
        raise ValueError(f"unknown {kind} {name!r}: {nearest(name, table)}")
    return table[name]


def check_options(kind: str, given: Iterable[str], allowed: Iterable[str]) -> None:
    allowed = list(allowed)
    for option in given:
        if option not in allowed:
            raise ValueError(f"{kind} has no option {option!r}: {nearest(option, allowed)}")


def check_name(name: str) -> None:
    """Raise on a name that is more than one part of a path, cannot be seen as it is, or reads as an option."""
    if not name.isprintable() or name != name.strip() or name[:1] in ("", ".", "-") or set(name) & set("/\\"):
        raise ValueError(
            f"name cannot be {name!r}: give letters, digits or other visible characters, without / or \\, "
            "and no dot or dash in front"
        )
    if len(name.encode()) > LONGEST:
        raise ValueError(f"name has {len(name.encode())} bytes: give at most {LONGEST}")
