"""The OpenAPI document of the HTTP interface."""

from __future__ import annotations

import math
from typing import Any

from attcem import __version__
from attcem.ship.tensors import Signature, TensorSpec

PARAMETERS = {"type": "object", "additionalProperties": True}
NUMBERS = {"FP32": {"type": "number"}, "UINT8": {"type": "integer", "minimum": 0, "maximum": 255}}
REASONS = {
    "400": "the request is wrong: `error` says how to mend it",
    "401": "a key is missing or wrong",
    "404": "no such model",
    "408": "the body came too slowly",
    "413": "the body or the batch is too large",
    "415": "the body is compressed",
    "429": "asked too often",
    "503": "too many requests at a time",
}


def content(schema: dict[str, Any], kind: str = "application/json", **more: Any) -> dict[str, Any]:
    return {kind: {"schema": schema, **more}}


def error(code: str) -> dict[str, Any]:
    schema = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
    return {"description": REASONS[code], "content": content(schema)}


def tensor(spec: TensorSpec, sizes: dict[str, Any]) -> dict[str, Any]:
    """A tensor of the protocol as JSON; in a binary body its values follow the JSON as bytes."""
    rank = 1 + len(spec.shape)
    return {
        "type": "object",
        "required": ["name", "datatype", "shape", "data"],
        "properties": {
            "name": {"const": spec.name},
            "datatype": {"const": spec.datatype},
            "shape": {"type": "array", "minItems": rank, "maxItems": rank, **sizes},
            "data": {"type": "array", "items": NUMBERS[spec.datatype], "description": "row by row"},
            "parameters": PARAMETERS,
        },
    }


def inference(signature: Signature) -> dict[str, Any]:
    """The operation that everything else is there for."""
    one = {"type": "array", "minItems": 1, "maxItems": 1}
    pictures = {"type": "integer", "minimum": 1, "maximum": signature.most}
    sizes = [pictures, *({"const": size} for size in signature.sent.shape)]
    output = {"type": "object", "required": ["name"], "properties": {"name": {"const": signature.logits.name}}}
    request = {
        "type": "object",
        "required": ["inputs"],
        "properties": {
            "id": {"type": "string"},
            "inputs": one | {"items": tensor(signature.sent, {"prefixItems": sizes})},
            "outputs": {"type": "array", "maxItems": 1, "items": output},
            "parameters": PARAMETERS,
        },
    }
    reply = {
        "type": "object",
        "required": ["model_name", "outputs"],
        "properties": {
            "model_name": {"type": "string"},
            "model_version": {"type": "string"},
            "id": {"type": "string"},
            "outputs": one | {"items": tensor(signature.logits, {"items": {"type": "integer"}})},
        },
    }
    shape = [1, *signature.sent.shape]
    black = signature.sent.metadata | {"shape": shape, "data": [0] * math.prod(shape)}
    raw = content({"type": "string", "format": "binary"}, "application/octet-stream")
    length = {
        "name": "Inference-Header-Content-Length",
        "in": "header",
        "required": False,
        "description": "length of the JSON, where binary tensors follow it",
        "schema": {"type": "integer", "minimum": 0},
    }
    return {
        "summary": "Logits of what devices sent",
        "parameters": [length],
        "requestBody": {"required": True, "content": content(request, example={"inputs": [black]}) | raw},
        "responses": {
            "200": {"description": "logits", "content": content(reply) | raw},
            **{code: error(code) for code in REASONS},
        },
    }


def reading(summary: str, kind: str = "application/json") -> dict[str, Any]:
    """An address for who has a key, where keys are needed."""
    replies = {"200": {"description": summary, "content": content({}, kind)}, "401": error("401")}
    return {"summary": summary, "responses": replies}


def health(summary: str) -> dict[str, Any]:
    """An address for everyone."""
    return {"summary": summary, "responses": {"200": {"description": summary, "content": content({})}}, "security": []}


def describe_interface(model: str, signature: Signature, locked: bool) -> dict[str, Any]:
    """Every address of the server."""
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "attcem: the cloud's half, Open Inference Protocol v2", "version": __version__},
        "paths": {
            "/v2": {"get": reading("The server")},
            "/v2/health/live": {"get": health("Whether the server lives")},
            "/v2/health/ready": {"get": health("Whether the server can infer")},
            f"/v2/models/{model}": {"get": reading("What the model takes and gives")},
            f"/v2/models/{model}/ready": {"get": reading("Whether the model can infer")},
            f"/v2/models/{model}/infer": {"post": inference(signature)},
            "/v2/repository/index": {method: reading("The models") for method in ("get", "post")},
            "/metrics": {"get": reading("Counters for Prometheus", "text/plain")},
        },
    }
    if locked:
        document["components"] = {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}}
        document["security"] = [{"key": []}]
    return document
