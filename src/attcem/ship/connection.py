"""uvicorn's HTTP connection, which waits only so long for what a client began to say."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from attcem.ship.limits import Limits

LINGER = 1.0  # seconds in which the rest of a refused body is thrown away, so that the client can read why


class Joined:
    """A transport that sends at once what is written at once: uvicorn writes head and body of a reply apart."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self.transport, self.loop = transport, loop
        self.parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self.parts:
            self.loop.call_soon(self.flush)
        self.parts.append(data)

    def flush(self) -> None:
        if self.parts:
            self.transport.write(b"".join(self.parts))
            self.parts.clear()

    def close(self) -> None:
        self.flush()
        self.transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)


def bounded_connection(limits: Limits) -> type[HttpToolsProtocol]:
    """The class of connections under these limits.

    uvicorn itself closes a connection that is idle after a reply (timeout_keep_alive), but waits for ever for the
    first byte and for the end of the headers, and keeps all of them.
    """

    class BoundedConnection(HttpToolsProtocol):
        """A connection with a clock."""

        clock: asyncio.TimerHandle | None = None
        header_bytes = 0
        between = True  # two bodies: idle, or reading headers
        arrived = False  # something whole, with the bytes that came last

        def connection_made(self, transport: Any) -> None:
            super().connection_made(Joined(transport, self.loop))  # type: ignore[arg-type]
            if len(self.connections) > limits.connections:
                self.refuse(503, f"{limits.connections} connections are open: try again in a second")
            else:
                self.close_after(limits.header_seconds)

        def connection_lost(self, exc: Exception | None) -> None:
            self.stop_clock()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self.transport.is_closing():
                return
            self.arrived = False
            super().data_received(data)
            if self.between and not self.arrived and not self.transport.is_closing():
                self.header_bytes += len(data)
                if self.header_bytes > limits.header_bytes:
                    self.refuse(431, f"the headers are longer than {limits.header_bytes} bytes: send shorter ones")
                elif self.clock is None:
                    self.close_after(limits.header_seconds)

        def eof_received(self) -> bool:  # type: ignore[override]
            """Whoever says no more still gets the reply to what was whole; what was not is refused."""
            self.transport.flush()  # type: ignore[attr-defined]
            if self.answering and self.scheme == "http":  # TLS has no half-closed connections
                self.cycle.keep_alive = False
                return True
            in_body = not self.between and not self.cycle.response_started
            if (self.header_bytes or in_body) and not self.transport.is_closing():
                self.refuse(400, "the request ended before it was whole: send as much as its headers announce")
            return False

        @property
        def answering(self) -> bool:
            return self.between and self.cycle is not None and not self.cycle.response_complete

        def on_headers_complete(self) -> None:
            self.between, self.arrived, self.header_bytes = False, True, 0
            self.stop_clock()
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self.between, self.arrived = True, True
            self.stop_clock()
            super().on_message_complete()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.cycle.response_complete and self.cycle.more_body:
                self.close_after(LINGER)

        def close_after(self, seconds: float) -> None:
            self.stop_clock()
            self.clock = self.loop.call_later(seconds, self.transport.close)

        def stop_clock(self) -> None:
            if self.clock is not None:
                self.clock.cancel()
                self.clock = None

        def send_400_response(self, msg: str) -> None:
            self.refuse(400, "this is not HTTP/1.1: see /openapi.json")

        def refuse(self, status: int, reason: str) -> None:
            """Answer before any request is there, and close."""
            body = json.dumps({"error": reason}).encode()
            head = f"HTTP/1.1 {status} Refused\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
            self.transport.write(head.encode() + b"connection: close\r\n\r\n" + body)
            self.transport.close()

    return BoundedConnection
