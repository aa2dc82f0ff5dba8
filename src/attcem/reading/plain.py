"""Plain files of a reasonable size, JSON from them, and the values that any configuration or result is made of."""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

MEGABYTE = 1_000_000
DEEPEST = 32
LARGEST = 2**63
LIMIT = 64 * MEGABYTE


def one_line(error: Exception) -> str:
    """What an error says, short enough for another error to repeat it."""
    return " ".join(str(error).split())[:200]


@contextmanager
def open_plain(path: Path) -> Iterator[BinaryIO]:
    """A file to read; a pipe or a device, which may never end, is refused."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(f"{path} is not a plain file: remove it")
        yield file


def read_content(path: Path, limit: int) -> bytes:
    with open_plain(path) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{path} is larger than {limit / MEGABYTE:g} MB: it is not what its name says")
    return content


def read_json(path: Path) -> Any:
    """What a JSON file holds; nested too deeply, with huge numbers or with half characters it is refused."""
    content = read_content(path, LIMIT)
    try:
        return checked(json.loads(content.decode(), object_pairs_hook=mapping_of))
    except (ValueError, RecursionError) as error:
        reason = f"nested more than {DEEPEST} deep" if isinstance(error, RecursionError) else one_line(error)
        raise ValueError(f"{path} is damaged: it is not JSON ({reason})") from None


def mapping_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Pairs as a mapping; a key that is there twice would hide one of its values."""
    mapping: dict[str, Any] = {}
    for key, value in pairs:
        if key in mapping:
            raise ValueError(f"the key {key!r} is there twice")
        mapping[key] = value
    return mapping


def checked(value: Any, depth: int = 0) -> Any:
    """The value, if it is plain all the way down: mappings with text as keys, lists, text, numbers of 64 bits."""
    if depth > DEEPEST:
        raise ValueError(f"nested more than {DEEPEST} deep")
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise ValueError(f"the key {key!r} is not text: put it in quotes")
            checked(key)
            checked(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            checked(inner, depth + 1)
    elif isinstance(value, str):
        value.encode()
    elif isinstance(value, int):
        if abs(value) >= LARGEST:
            raise ValueError("a whole number has more than 64 bits")
    elif not isinstance(value, float | None):
        raise ValueError(f"{value!r} is neither text nor a number, mapping or list")
    return value
