"""Requests as a client of the protocol writes them, and replies as it reads them."""

import json

import numpy as np

from attcem.ship.protocol import HEADER_LENGTH

INFER = "/v2/models/cloud/infer"


def in_json(values, **more):
    """The body and the headers of a request in JSON."""
    datatype = {"f": "FP32", "u": "UINT8"}[values.dtype.kind]
    given = {"name": "sent", "datatype": datatype, "shape": list(values.shape), "data": values.ravel().tolist()}
    return json.dumps({"inputs": [given], **more}).encode(), {}


def in_binary(values, **more):
    """The same with binary tensors, there and back."""
    datatype, content = {"f": "FP32", "u": "UINT8"}[values.dtype.kind], values.tobytes()
    given = {"name": "sent", "datatype": datatype, "shape": list(values.shape)}
    given["parameters"] = {"binary_data_size": len(content)}
    wanted = {"parameters": {"binary_data_output": True}}
    head = json.dumps({"inputs": [given], **wanted, **more}).encode()
    return head + content, {HEADER_LENGTH: str(len(head))}


def read_logits(body, headers):
    """What a reply holds."""
    if HEADER_LENGTH not in headers:
        output = json.loads(body)["outputs"][0]
        return np.array(output["data"], np.float32).reshape(output["shape"])
    end = int(headers[HEADER_LENGTH])
    output = json.loads(body[:end])["outputs"][0]
    assert output["parameters"]["binary_data_size"] == len(body) - end
    return np.frombuffer(body[end:], "<f4").reshape(output["shape"])
