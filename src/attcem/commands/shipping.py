"""Commands around an artifact: what is exported, sent, served and shown. Heavy imports wait inside, for help."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from attcem.commands.chosen import chosen
from attcem.configfile import UsageError
from attcem.terminal import tell

if TYPE_CHECKING:
    from attcem.ship import Prediction


def export(options: Namespace) -> None:
    """Write both halves of an audited run as an artifact that can be shipped."""
    from attcem.ship.triton import check_free, write_repository
    from attcem.shipped import export_run

    if options.triton:
        check_free(options.triton)
    folder = export_run(Path(options.run), Path(options.out))
    tell(f"artifact      {folder}", f"attack it     attcem audit {folder}")
    if options.triton:
        tell(f"repository    {write_repository(folder, options.triton).parent}")


def send(options: Namespace) -> None:
    """Send pictures to the cloud's half of an artifact, and only what was audited."""
    from dataclasses import replace

    from attcem.ship import Device, Unreachable

    given = {"picture": options.per_picture, "lookalikes": options.per_lookalike or options.per_picture}
    given |= chosen(options, "total", "nats")
    reached = chosen(options, "state", "name", "ca", "timeout", "retries", "queue")
    unsent = 0
    with Device(options.artifact, options.cloud, key=os.environ.get("ATTCEM_KEY"), **reached) as device:
        device.budget = replace(device.budget, **{name: value for name, value in given.items() if value is not None})
        for image in options.images:
            try:
                print_prediction(image, device.send(image, resize=options.resize))
            except Unreachable as error:
                unsent += 1
                tell(f"attcem: {image}: {error}", file=sys.stderr)
        if not unsent:
            for id, prediction in device.send_waiting().items():
                print_prediction(id, prediction)
    if unsent:
        again = f"attcem send {options.artifact} --cloud {options.cloud}"
        raise ValueError(f"{unsent} of {len(options.images)} messages wait: {again}")


def serve(options: Namespace) -> None:
    """Answer for the cloud's half of an artifact, over HTTP and gRPC, until told to stop."""
    from functools import partial

    from attcem.ship.keys import read_keys
    from attcem.ship.limits import Limits
    from attcem.ship.page_routes import page_routes
    from attcem.ship.service import CloudService
    from attcem.ship.serving import check_tls, serve

    if options.engine == "local" and (options.replicas or options.address):
        raise UsageError("--replicas and --address are for --engine ray")
    if options.engine == "ray" and options.grpc_port is not None:
        raise UsageError("--grpc-port is not for --engine ray: its replicas answer over HTTP")
    if options.engine == "ray" and options.page:
        raise UsageError("--page is not for --engine ray: show it with --engine local")
    keys = read_keys(options.keys)
    limits = Limits(options.max_body, options.max_batch, options.max_concurrent, options.rate)
    build = partial(
        CloudService, Path(options.artifact).resolve(), keys=keys, limits=limits, **chosen(options, "name", "threads")
    )
    where = chosen(options, "host", "port") | {"tls": check_tls(options.cert, options.key)}

    def started(scheme: str, port: int, grpc_port: int | None) -> None:
        host = f"[{options.host}]" if ":" in options.host else options.host
        tell(f"HTTP          {scheme}://{host}:{port}/v2/models/{options.name}")
        if grpc_port is not None:
            tell(f"gRPC          {host}:{grpc_port}")
        if options.page:
            tell(f"page          {scheme}://{host}:{port}/")
        tell(f"keys          {len(keys.digests) or 'none: whoever reaches this address may ask'}")
        sys.stdout.flush()

    if options.engine == "local":
        service = build()
        more = page_routes(options.artifact, service) if options.page else []
        serve(service, grpc_port=options.grpc_port, more=more, started=started, **where)
    else:
        from attcem.ship.replicas import serve_replicas

        serve_replicas(build, options.replicas or 1, address=options.address, started=started, **where)


def page(options: Namespace) -> None:
    """Prepare what `attcem serve ARTIFACT --page` shows: an undefended twin, and an attacker of each, trained here."""
    from attcem.pages import prepare_page

    folder = prepare_page(Path(options.artifact), Path(options.twin))
    tell(f"page          {folder}", f"show it       attcem serve {options.artifact} --page")


def print_prediction(what: str, prediction: Prediction) -> None:
    tell(f"{what}   {prediction.label}   {prediction.probabilities[prediction.label]:.3f}")
