"""The same application on Ray Serve: replicas on one machine or on a cluster, for who outgrows a process."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attcem.reading.plain import one_line
from attcem.ship.graphs import needed
from attcem.ship.server import http_app
from attcem.ship.service import CloudService
from attcem.ship.serving import Started, bound_socket


def serve_replicas(
    build: Callable[[], CloudService],
    replicas: int,
    *,
    address: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    tls: tuple[Path, Path] | None = None,
    started: Started,
) -> None:
    """Answer until SIGTERM or SIGINT; each replica builds a service of its own, within limits of its own."""
    ray, serve = needed("ray", "ray"), needed("ray.serve", "ray")
    one = build()  # what is wrong with the artifact is said here
    with bound_socket(host, port) as taken:
        port = taken.getsockname()[1]
    options: dict[str, Any] = {"host": host, "port": port}
    if tls:
        options |= {"ssl_certfile": str(tls[0].resolve()), "ssl_keyfile": str(tls[1].resolve())}
    stop = threading.Event()

    def application() -> Any:
        return http_app(build())

    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError) as error:
        raise ValueError(
            f"no Ray cluster at {address!r} ({one_line(error)}): start one with `ray start --head`"
        ) from None
    try:
        serve.start(http_options=options, logging_config={"log_level": "ERROR"})
        deployment = serve.deployment(serve.ingress(application)()).options(
            name="cloud",
            num_replicas=replicas,
            max_ongoing_requests=one.limits.concurrent,
            ray_actor_options={"num_cpus": one.threads},
        )
        serve.run(deployment.bind(), name="attcem", route_prefix="/")
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        started("https" if tls else "http", port, None)
        stop.wait()
    finally:
        serve.shutdown()
        ray.shutdown()
