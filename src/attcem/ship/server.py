"""The Open Inference Protocol over HTTP: a Starlette application around the service."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from attcem.ship.limits import Gone, read_body
from attcem.ship.openapi import describe_interface
from attcem.ship.protocol import HEADER_LENGTH, JSON, read_request, write_reply
from attcem.ship.service import VERSION, CloudService
from attcem.ship.tensors import Refused

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
Endpoint = Callable[[Request], Awaitable[Response]]


def as_json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps(content, separators=(",", ":")), status, headers, JSON)


def refusal(refused: Refused) -> Response:
    """The reply to who is not served."""
    headers = {} if refused.wait is None else {"retry-after": str(max(1, round(refused.wait)))}
    if refused.status == 401:
        headers["www-authenticate"] = "Bearer"
    return as_json({"error": str(refused)}, refused.status, headers)


class HttpApi:
    """Every endpoint; health is for anyone, the rest for who has a key."""

    def __init__(self, service: CloudService) -> None:
        self.service = service
        self.document = describe_interface(service.name, service.signature, bool(service.keys.digests))

    async def health(self, request: Request) -> Response:
        return as_json({})

    async def server(self, request: Request) -> Response:
        return as_json(self.service.server_metadata)

    async def model(self, request: Request) -> Response:
        self.check_model(request)
        return as_json(self.service.model_metadata)

    async def model_ready(self, request: Request) -> Response:
        self.check_model(request)
        return as_json({})

    async def index(self, request: Request) -> Response:
        return as_json(self.service.index)

    async def metrics(self, request: Request) -> Response:
        return Response(self.service.meters.text(), media_type=PROMETHEUS)

    async def openapi(self, request: Request) -> Response:
        return as_json(self.document)

    async def infer(self, request: Request) -> Response:
        service, headers = self.service, request.headers
        try:
            with service.counted("http"), service.admitted(headers.get("authorization"), address(request)):
                self.check_model(request)
                if "content-encoding" in headers:
                    raise Refused("compressed bodies are not read: send the body as it is", 415)
                body = await read_body(request.receive, headers.get("content-length"), service.limits)
                asked = read_request(body, headers.get(HEADER_LENGTH), service.signature)
                reply, kind = write_reply(asked, await service.logits(asked.values), service.name, VERSION)
            return Response(reply, headers=kind)
        except Refused as refused:
            return refusal(refused)
        except Gone:
            return Response(status_code=400)

    def check_model(self, request: Request) -> None:
        self.service.check_model(request.path_params["name"], request.path_params.get("version", ""))

    def with_key(self, endpoint: Endpoint) -> Endpoint:
        async def checked(request: Request) -> Response:
            self.service.keys.check(request.headers.get("authorization"), address(request))
            return await endpoint(request)

        return checked


def address(request: Request) -> str:
    return request.client.host if request.client else ""


def http_app(service: CloudService, more: Sequence[Route] = ()) -> Starlette:
    """The application, with `more` beside the protocol; its errors are JSON and tell nothing of the inside."""
    api = HttpApi(service)
    model = "/v2/models/{name}"
    routes = [
        Route(f"{model}/infer", api.infer, methods=["POST"]),
        Route(f"{model}/versions/{{version}}/infer", api.infer, methods=["POST"]),
        Route("/v2/health/live", api.health),
        Route("/v2/health/ready", api.health),
        Route("/v2", api.with_key(api.server)),
        Route(model, api.with_key(api.model)),
        Route(f"{model}/versions/{{version}}", api.with_key(api.model)),
        Route(f"{model}/ready", api.with_key(api.model_ready)),
        Route(f"{model}/versions/{{version}}/ready", api.with_key(api.model_ready)),
        Route("/v2/repository/index", api.with_key(api.index), methods=["GET", "POST"]),
        Route("/metrics", api.with_key(api.metrics)),
        Route("/openapi.json", api.with_key(api.openapi)),
        *more,
    ]

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        return refusal(error)

    async def missed(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        reasons = {404: "there is nothing here", 405: f"{request.method} is not for this address"}
        reason = f"{reasons.get(error.status_code, 'this cannot be served')}: see /openapi.json"
        return as_json({"error": reason}, error.status_code, dict(error.headers or {}))

    async def failed(request: Request, error: Exception) -> Response:
        return as_json({"error": "the server failed: its log says why"}, 500)

    handlers: Any = {Refused: refused, HTTPException: missed, Exception: failed}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return app
