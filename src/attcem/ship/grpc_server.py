"""The Open Inference Protocol over gRPC, around the same service as HTTP."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from attcem.ship.messages import SERVICE, message, methods
from attcem.ship.service import VERSION, CloudService
from attcem.ship.tensors import Refused, Signature, from_bytes, from_numbers

LOG = logging.getLogger(__name__)
ENVELOPE = 65_536  # bytes that a request may have around its values
CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    404: grpc.StatusCode.NOT_FOUND,
    413: grpc.StatusCode.INVALID_ARGUMENT,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    503: grpc.StatusCode.UNAVAILABLE,
}
CONTENTS = {"FP32": "fp32_contents", "UINT8": "uint_contents"}


def read_values(request: Any, signature: Signature) -> np.ndarray:
    """What a request asks logits of, from its raw or its typed contents."""
    if len(request.inputs) != 1:
        raise Refused(f"the request has {len(request.inputs)} inputs: send one, {signature.sent.name!r}")
    given = request.inputs[0]
    shape = signature.check(given.name, given.datatype, list(given.shape))
    if unknown := [each.name for each in request.outputs if each.name != signature.logits.name]:
        raise Refused(f"the output {unknown[0][:60]!r} is unknown: ask for {signature.logits.name!r}")
    raw, spec = request.raw_input_contents, signature.sent
    if len(raw) and given.HasField("contents"):
        raise Refused(f"{spec.name} has raw and typed contents: send one of them")
    if len(raw) > 1:
        raise Refused(f"there are {len(raw)} raw contents: send one, that of {spec.name}")
    if len(raw):
        return from_bytes(spec, shape, raw[0])
    return from_numbers(spec, shape, list(getattr(given.contents, CONTENTS[spec.datatype])))


def write_values(request: Any, logits: np.ndarray, model: str) -> Any:
    """The reply, raw if the values were."""
    reply = message("ModelInferResponse")(model_name=model, model_version=VERSION, id=request.id)
    output = reply.outputs.add(name="logits", datatype="FP32", shape=logits.shape)
    if len(request.raw_input_contents):
        reply.raw_output_contents.append(logits.astype("<f4", copy=False).tobytes())
    else:
        output.contents.fp32_contents.extend(logits.ravel().tolist())
    return reply


class GrpcApi:
    """Every method of the protocol; whether the server lives is for anyone, the rest for who has a key."""

    open_to_all = frozenset({"ServerLive", "ServerReady"})

    def __init__(self, service: CloudService) -> None:
        self.service = service

    async def ServerLive(self, request: Any) -> Any:
        return message("ServerLiveResponse")(live=True)

    async def ServerReady(self, request: Any) -> Any:
        return message("ServerReadyResponse")(ready=True)

    async def ModelReady(self, request: Any) -> Any:
        self.service.check_model(request.name, request.version)
        return message("ModelReadyResponse")(ready=True)

    async def ServerMetadata(self, request: Any) -> Any:
        return message("ServerMetadataResponse")(**self.service.server_metadata)

    async def ModelMetadata(self, request: Any) -> Any:
        self.service.check_model(request.name, request.version)
        return message("ModelMetadataResponse")(**self.service.model_metadata)

    async def RepositoryIndex(self, request: Any) -> Any:
        return message("RepositoryIndexResponse")(models=self.service.index)

    async def ModelInfer(self, request: Any) -> Any:
        self.service.check_model(request.model_name, request.model_version)
        values = read_values(request, self.service.signature)
        return write_values(request, await self.service.logits(values), self.service.name)

    async def admitted(self, name: str, request: Any, authorization: str | None, client: str) -> Any:
        """The reply to who may ask."""
        method: Callable[[Any], Awaitable[Any]] = getattr(self, name)
        if name == "ModelInfer":
            with self.service.counted("grpc"), self.service.admitted(authorization, client):
                return await method(request)
        if name not in self.open_to_all:
            self.service.keys.check(authorization, client)
        return await method(request)

    def handler(self, name: str) -> Any:
        """The method as gRPC calls it: refusals become codes, and nothing of the inside is told."""
        asked, replied = methods()[name]

        async def call(request: Any, context: Any) -> Any:
            told = {key: value for key, value in context.invocation_metadata() or () if key == "authorization"}
            try:
                return await self.admitted(name, request, told.get("authorization"), host(context.peer()))
            except Refused as refused:
                await context.abort(CODES[refused.status], str(refused))
            except Exception:
                LOG.exception("%s failed", name)
                await context.abort(grpc.StatusCode.INTERNAL, "the server failed: its log says why")

        return grpc.unary_unary_rpc_method_handler(
            call, request_deserializer=asked.FromString, response_serializer=replied.SerializeToString
        )


def host(peer: str) -> str:
    """The address of a client without its port, which is another one every time."""
    return peer.rpartition(":")[0]


async def start_grpc(
    service: CloudService, address: str, tls: tuple[Path, Path] | None = None
) -> tuple[grpc.aio.Server, int]:
    """A server that answers, and the port that it has."""
    limits, api = service.limits, GrpcApi(service)
    options = [
        ("grpc.max_receive_message_length", limits.body + ENVELOPE),
        ("grpc.max_concurrent_streams", limits.concurrent),
        ("grpc.max_metadata_size", limits.header_bytes),
        ("grpc.so_reuseport", 0),
    ]
    server = grpc.aio.server(options=options, maximum_concurrent_rpcs=2 * limits.concurrent)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(SERVICE, {name: api.handler(name) for name in methods()}),)
    )
    try:
        if tls is None:
            port = server.add_insecure_port(address)
        else:
            certificate, key = (path.read_bytes() for path in tls)
            port = server.add_secure_port(address, grpc.ssl_server_credentials([(key, certificate)]))
    except RuntimeError:
        raise ValueError(f"{address} cannot be taken for gRPC: choose another --grpc-port") from None
    await server.start()
    return server, port
