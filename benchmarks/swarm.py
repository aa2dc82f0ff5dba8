"""Many clients of one HTTP server in one thread: each asks again as soon as it is answered."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

PATIENCE = 30.0  # seconds without any answer


@dataclass
class Client:
    """One connection: what was asked on it, when, and what came back so far."""

    connection: socket.socket
    asked: int = -1
    began: float = 0.0
    heard: bytearray = field(default_factory=bytearray)

    def ask(self, number: int, request: bytes) -> None:
        self.asked, self.began = number, time.perf_counter()
        self.connection.sendall(request)

    def reply(self) -> tuple[bytes, bytes] | None:
        """The head and the body, once they are there."""
        end = self.heard.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = bytes(self.heard[:end]).lower()
        length = int(head.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0])
        if len(self.heard) < end + 4 + length:
            return None
        body = bytes(self.heard[end + 4 : end + 4 + length])
        del self.heard[: end + 4 + length]
        return head, body


def swarm(
    port: int, clients: int, request: Callable[[int], bytes], count: int, check: Callable[[int, bytes, bytes], None]
) -> list[float]:
    """Ask `count` times, with so many clients; the seconds that each answer took, after `check(number, head, body)`."""
    seconds: list[float] = []
    numbers: Iterator[int] = iter(range(count))
    with selectors.DefaultSelector() as selector:
        for _ in range(min(clients, count)):
            connection = socket.create_connection(("127.0.0.1", port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client = Client(connection)
            selector.register(connection, selectors.EVENT_READ, client)
            number = next(numbers)
            client.ask(number, request(number))
        while len(seconds) < count:
            events = selector.select(PATIENCE)
            if not events:
                raise TimeoutError(f"no answer for {PATIENCE:g} s, after {len(seconds)} of {count}")
            for key, _ in events:
                client = key.data
                part = client.connection.recv(1 << 16)
                if not part:
                    raise ConnectionError(f"the server hung up on request {client.asked}")
                client.heard += part
                answered = client.reply()
                if answered is None:
                    continue
                seconds.append(time.perf_counter() - client.began)
                check(client.asked, *answered)
                number = next(numbers, -1)
                if number >= 0:
                    client.ask(number, request(number))
        for key in list(selector.get_map().values()):
            key.data.connection.close()
    return seconds
