"""JSON from a file, and the values that any configuration or result is made of."""

import json
from pathlib import Path
from typing import Any

from attcem.reading.content import MEGABYTE, one_line, read_content

DEEPEST = 32
LARGEST = 2**63
LIMIT = 64 * MEGABYTE


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
