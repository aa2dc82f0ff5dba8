"""What a server allows: sizes, numbers at a time, rates, and how long it waits for who says nothing."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from attcem.reading.plain import MEGABYTE
from attcem.ship.tensors import Refused

CLIENTS = 10_000  # whose rates are remembered


@dataclass(frozen=True)
class Limits:
    """What one server takes on."""

    body: int = 16 * MEGABYTE
    batch: int = 64  # pictures in a request
    concurrent: int = 64  # requests at a time
    rate: float | None = None  # requests a second of each client
    connections: int = 1024
    header_bytes: int = 32_768
    header_seconds: float = 10.0
    body_seconds: float = 10.0


class Gone(Exception):
    """The client went away before its request was whole: nobody waits for a reply."""


async def read_body(
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]], announced: str | None, limits: Limits
) -> bytes:
    """The body of a request, refused as soon as it is known to be too long or too slow."""
    too_long = f"the body is longer than {limits.body} bytes: send fewer pictures, or start the server with --max-body"
    if announced is not None and announced.isascii() and announced.isdigit() and int(announced[:20]) > limits.body:
        raise Refused(too_long, 413)
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > limits.body:
                    raise Refused(too_long, 413)
                if not message.get("more_body", False):
                    return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)
    except TimeoutError:
        raise Refused(f"the body was not there after {limits.body_seconds:g} s: send it at once", 408) from None


class Rate:
    """So many requests a second of each client, and a second's worth of them at once."""

    def __init__(self, rate: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.clock = rate, clock
        self.due: OrderedDict[str, float] = OrderedDict()  # client → when an even flow would have its next request

    def check(self, client: str) -> None:
        """Raise where a client asks too often (the generic cell rate algorithm)."""
        if self.rate is None:
            return
        now = self.clock()
        due = max(self.due.pop(client, now), now)
        ahead = due - now - max(1.0 - 1.0 / self.rate, 0.0)
        self.due[client] = due if ahead > 1e-9 else due + 1.0 / self.rate
        if len(self.due) > CLIENTS:
            self.due.popitem(last=False)
        if ahead > 1e-9:
            raise Refused(f"more than {self.rate:g} requests a second: try again in {ahead:.2f} s", 429, wait=ahead)


class Places:
    """Requests that are served at a time."""

    def __init__(self, most: int) -> None:
        self.most, self.taken = most, 0

    @contextmanager
    def one(self) -> Iterator[None]:
        if self.taken >= self.most:
            raise Refused(f"{self.most} requests are being served: try again in a second", 503, wait=1.0)
        self.taken += 1
        try:
            yield
        finally:
            self.taken -= 1
