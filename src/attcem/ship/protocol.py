"""The Open Inference Protocol v2 over HTTP: requests read and replies written, with JSON or with binary tensors."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from attcem.reading.plain import mapping_of, one_line
from attcem.ship.tensors import Refused, Signature, from_bytes, from_numbers

HEADER_LENGTH = "inference-header-content-length"
JSON, BINARY = "application/json", "application/octet-stream"


@dataclass(frozen=True)
class Asked:
    """What a request asks for: logits of these values, as JSON or as bytes."""

    values: np.ndarray
    id: str | None = None
    binary: bool = False


def read_request(body: bytes, header_length: str | None, signature: Signature) -> Asked:
    """What the body of a request asks for; with a header length, JSON of so many bytes and then the tensors."""
    try:
        return read_parts(body, header_length, signature)
    except RecursionError:
        raise Refused("the request is nested too deeply: send the numbers of the input as a flat list") from None


def read_parts(body: bytes, header_length: str | None, signature: Signature) -> Asked:
    if header_length is None:
        content, tensors = body, memoryview(b"")
    else:
        end = read_length(header_length, len(body))
        content, tensors = body[:end], memoryview(body)[end:]
    request = read_mapping(content)
    inputs = listed(request, "inputs")
    if len(inputs) != 1:
        raise Refused(f"the request has {len(inputs)} inputs: send one, {signature.sent.name!r}")
    given = inputs[0]
    shape = signature.check(given.get("name"), given.get("datatype"), given.get("shape"))
    size = parameters(given).get("binary_data_size")
    if size is None:
        if len(tensors):
            raise Refused(f"{len(tensors)} bytes follow the JSON: announce them as the input's binary_data_size")
        values = from_numbers(signature.sent, shape, given.get("data"))
    elif "data" in given or size != len(tensors):
        raise Refused(
            f"binary_data_size is {str(size)[:30]}, and {len(tensors)} bytes follow the JSON: send one or the other"
        )
    else:
        values = from_bytes(signature.sent, shape, tensors)
    name = request.get("id")
    if not isinstance(name, str | None):
        raise Refused("the id of the request is no text: put it in quotes")
    return Asked(values, name, wants_binary(request, signature))


def read_length(text: str, size: int) -> int:
    """The length of the JSON in a body of this size."""
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= size):
        raise Refused(f"{HEADER_LENGTH} is {text[:30]!r}: send the length of the JSON, of {size} bytes in the body")
    return int(text)


def read_mapping(content: bytes) -> dict[str, Any]:
    try:
        request = json.loads(content.decode(), object_pairs_hook=mapping_of, parse_constant=no_constant)
    except ValueError as error:
        raise Refused(f"the request is not JSON ({one_line(error)}): see /openapi.json") from None
    if not isinstance(request, dict):
        raise Refused("the request is no JSON mapping: see /openapi.json")
    return request


def no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def listed(request: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The mappings that a request lists under a name."""
    found = request.get(name, [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Refused(f"{name} of the request is no list of mappings: see /openapi.json")
    return found


def parameters(of: dict[str, Any]) -> dict[str, Any]:
    found = of.get("parameters", {})
    if not isinstance(found, dict):
        raise Refused("parameters are no mapping: see /openapi.json")
    return found


def wants_binary(request: dict[str, Any], signature: Signature) -> bool:
    """Whether the logits are asked for as bytes: by the output itself, or by the request for all of them."""
    binary = parameters(request).get("binary_data_output", False)
    outputs = listed(request, "outputs")
    for each in outputs:
        if each.get("name") != signature.logits.name:
            raise Refused(f"the output {str(each.get('name'))[:60]!r} is unknown: ask for {signature.logits.name!r}")
        if "classification" in parameters(each):
            raise Refused("classification is not offered: ask for the logits and sort them")
        binary = parameters(each).get("binary_data", binary)
    if len(outputs) > 1:
        raise Refused(f"{signature.logits.name} is asked for {len(outputs)} times: ask once")
    if not isinstance(binary, bool):
        raise Refused("binary_data and binary_data_output are true or false")
    return binary


def write_reply(asked: Asked, logits: np.ndarray, model: str, version: str) -> tuple[bytes, dict[str, str]]:
    """The body of a reply and its headers."""
    output: dict[str, Any] = {"name": "logits", "datatype": "FP32", "shape": list(logits.shape)}
    if asked.binary:
        content = logits.astype("<f4", copy=False).tobytes()
        output["parameters"] = {"binary_data_size": len(content)}
    else:
        output["data"] = logits.ravel().tolist()
    reply = {"model_name": model, "model_version": version, "outputs": [output]}
    if asked.id is not None:
        reply["id"] = asked.id
    head = json.dumps(reply, separators=(",", ":")).encode()
    if not asked.binary:
        return head, {"content-type": JSON}
    return head + content, {"content-type": BINARY, HEADER_LENGTH: str(len(head))}
