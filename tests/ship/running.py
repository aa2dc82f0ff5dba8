"""A server that answers on a port of this machine while a test talks to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from attcem.ship.service import CloudService
from attcem.ship.serving import bound_socket, http_server


@contextmanager
def running(service: CloudService, tls: tuple[Path, Path] | None = None) -> Iterator[int]:
    """The port of a server in a thread, where no signals come."""
    server, taken = http_server(service, tls), bound_socket("127.0.0.1", 0)
    server.capture_signals = nullcontext  # type: ignore[method-assign]
    port = taken.getsockname()[1]
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([taken])), daemon=True)
    thread.start()
    try:
        yield port
    finally:
        server.should_exit = server.force_exit = True
        thread.join(20)
        service.batcher.close()
