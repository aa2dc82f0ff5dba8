"""A message as the Open Inference Protocol v2 carries it, with binary tensors, and what the cloud answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from attcem.reading.plain import checked, one_line

HEADER_LENGTH = "Inference-Header-Content-Length"
DATATYPES = {"uint8": "UINT8", "float32": "FP32"}


@dataclass(frozen=True)
class Message:
    """The bytes of one send; a second attempt sends the same ones."""

    id: str
    headers: dict[str, str]
    body: bytes


def infer_request(id: str, sent: np.ndarray) -> Message:
    """Ask for the logits of what is sent."""
    content = sent.tobytes()
    tensor = {
        "name": "sent",
        "shape": list(sent.shape),
        "datatype": DATATYPES[str(sent.dtype)],
        "parameters": {"binary_data_size": len(content)},
    }
    outputs = [{"name": "logits", "parameters": {"binary_data": True}}]
    header = json.dumps({"id": id, "inputs": [tensor], "outputs": outputs}, separators=(",", ":")).encode()
    headers = {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(len(header))}
    return Message(id, headers, header + content)


def read_logits(headers: Mapping[str, str], body: bytes, id: str, classes: int) -> np.ndarray:
    """The logits in an answer, binary or JSON, if it is one to this very request."""
    try:
        length = int(headers.get(HEADER_LENGTH, len(body)))
        answer = checked(json.loads(body[: max(0, length)]))
        if answer.get("id", id) != id:
            raise ValueError("it answers another request")
        (output,) = [each for each in answer["outputs"] if each["name"] == "logits"]
        if output["datatype"] != "FP32" or list(output["shape"]) != [1, classes]:
            raise ValueError(f"its logits are {output['datatype']} {output['shape']}, not FP32 [1, {classes}]")
        given = np.frombuffer(body[length:], "<f4") if "data" not in output else np.ravel(output["data"])
        logits = given.astype(np.float64)
        if logits.shape != (classes,) or not np.isfinite(logits).all():
            raise ValueError("its logits are not finite numbers, one for each class")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"the cloud's answer cannot be read ({one_line(error)}): is it `attcem serve`?") from None
    return logits
