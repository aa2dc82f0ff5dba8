"""API keys: read from a file or the environment, compared in constant time, never printed."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable
from pathlib import Path

from attcem.reading.plain import MEGABYTE, read_content
from attcem.ship.tensors import Refused

VARIABLE = "ATTCEM_KEYS"
SHORTEST = 16
OPEN = "anyone"


class Keys:
    """The keys that open a server; without any it is open. Only digests are kept."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self.digests = [digest(key) for key in keys]

    def check(self, authorization: str | None, client: str) -> str:
        """Who asks, for the count of requests: the key's digest, or the client's address where no key is needed."""
        if not self.digests:
            return client
        scheme, _, key = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise Refused("a key is needed: send the header `Authorization: Bearer KEY`", 401)
        given = digest(key.strip())
        if not sum(hmac.compare_digest(given, known) for known in self.digests):  # every key, whichever fits
            raise Refused("the key is not one of this server's: ask who runs it for one", 401)
        return given.hex()


def digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


def read_keys(path: str | Path | None) -> Keys:
    """Keys of a file, one a line, or of the environment's ATTCEM_KEYS, with spaces between."""
    if path is None:
        where, lines = f"the environment's {VARIABLE}", os.environ.get(VARIABLE, "").split()
        if VARIABLE not in os.environ:
            return Keys()
    else:
        where = str(path)
        try:
            text = read_content(Path(path), MEGABYTE).decode("ascii")
        except UnicodeDecodeError:
            raise ValueError(f"{where} is not plain text: write keys of ASCII characters, one a line") from None
        lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for place, key in enumerate(lines, 1):
        if len(key) < SHORTEST or not key.isascii() or not key.isprintable() or " " in key:
            raise ValueError(
                f"key {place} of {where} is too short or holds a blank: "
                f"take {SHORTEST} characters or more, as from `openssl rand -hex 16`"
            )
    if not lines:
        raise ValueError(f"{where} holds no key: write one, or leave it out for a server that is open")
    return Keys(lines)
