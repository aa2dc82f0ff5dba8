"""Serve: HTTP, and gRPC if it is asked for, until a signal comes; what is being answered is answered first."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.routing import Route

from attcem.ship.connection import bounded_connection
from attcem.ship.server import http_app
from attcem.ship.service import CloudService

Started = Callable[[str, int, int | None], None]
"""Told the scheme, the port of HTTP and that of gRPC, once requests are taken."""

GRACE = 10  # seconds for what is being answered when the server is told to stop
IDLE = 30  # seconds that a connection may be idle between two requests


class Server(uvicorn.Server):
    """uvicorn, which ends without an error when it is told to stop."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def stop(self) -> None:
        self.force_exit, self.should_exit = self.should_exit, True


def http_server(service: CloudService, tls: tuple[Path, Path] | None = None, more: Sequence[Route] = ()) -> Server:
    """uvicorn under the service's limits."""
    config = uvicorn.Config(
        http_app(service, more),
        http=bounded_connection(service.limits),
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=GRACE,
        ssl_certfile=tls and tls[0],
        ssl_keyfile=tls and tls[1],
    )
    return Server(config)


def check_tls(certificate: str | None, key: str | None) -> tuple[Path, Path] | None:
    """The files of a certificate and its key, if both are there and belong together."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise ValueError("TLS needs both: --cert FILE --key FILE")
    paths = Path(certificate), Path(key)
    for path in paths:
        if not path.is_file():
            raise ValueError(f"{path} is not there: name the files of the certificate and of its key")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*paths, password="")
    except ssl.SSLError as error:
        raise ValueError(f"{paths[0]} and {paths[1]} are no certificate and its open key ({error.reason})") from None
    return paths


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket that listens at an address, taken before anything else is started."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        taken = socket.create_server(address[:2], family=family, backlog=2048)
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # its connections inherit that: 40 ms a request
        return taken
    except OSError as error:
        raise ValueError(f"{host} port {port} cannot be taken ({error.strerror or error}): choose another") from None


def serve(
    service: CloudService,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    grpc_port: int | None = None,
    tls: tuple[Path, Path] | None = None,
    more: Sequence[Route] = (),
    started: Started,
) -> None:
    """Answer until SIGTERM or SIGINT; `more` routes of HTTP are beside those of the protocol."""
    asyncio.run(serving(service, bound_socket(host, port), host, grpc_port, tls, more, started))


async def serving(
    service: CloudService,
    taken: socket.socket,
    host: str,
    grpc_port: int | None,
    tls: tuple[Path, Path] | None,
    more: Sequence[Route],
    started: Started,
) -> None:
    grpc_server = None
    with taken:
        if grpc_port is not None:
            from attcem.ship.grpc_server import start_grpc

            address = f"[{host}]:{grpc_port}" if ":" in host else f"{host}:{grpc_port}"
            grpc_server, grpc_port = await start_grpc(service, address, tls)
        started("https" if tls else "http", taken.getsockname()[1], grpc_port)
        try:
            await http_server(service, tls, more).serve([taken])
        finally:
            if grpc_server is not None:
                await grpc_server.stop(GRACE)
            service.batcher.close()
