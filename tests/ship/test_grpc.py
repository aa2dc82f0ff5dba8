"""The protocol over gRPC, asked by grpcio's own client."""

import asyncio
import subprocess
import sys
from importlib.util import find_spec

import grpc
import numpy as np
import pytest

from attcem.ship.grpc_server import start_grpc
from attcem.ship.keys import Keys
from attcem.ship.limits import Limits
from attcem.ship.messages import DESCRIPTION, SERVICE, message, methods
from attcem.ship.service import CloudService

KEY = "0123456789abcdef"


def asked(service, *calls, metadata=()):
    """The replies to (method, request), or the errors."""

    async def ask():
        server, port = await start_grpc(service, "127.0.0.1:0")
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:

            def call(name, request):
                _, replied = methods()[name]
                method = channel.unary_unary(
                    f"/{SERVICE}/{name}",
                    request_serializer=lambda one: one if isinstance(one, bytes) else one.SerializeToString(),
                    response_deserializer=replied.FromString,
                )
                return method(request, metadata=metadata, timeout=20)

            replies = await asyncio.gather(*(call(*each) for each in calls), return_exceptions=True)
        await server.stop(None)
        return replies

    return asyncio.run(ask())


def infer(values, raw=True, **changes):
    datatype = {"f": "FP32", "u": "UINT8"}[values.dtype.kind]
    request = message("ModelInferRequest")(**{"model_name": "cloud", "id": "7"} | changes)
    given = request.inputs.add(name="sent", datatype=datatype, shape=values.shape)
    if raw:
        request.raw_input_contents.append(values.tobytes())
    else:
        contents = {"FP32": "fp32_contents", "UINT8": "uint_contents"}[datatype]
        getattr(given.contents, contents).extend(values.ravel().tolist())
    return "ModelInfer", request


def logits_of(reply):
    content = reply.raw_output_contents
    numbers = np.frombuffer(content[0], "<f4") if content else np.float32(reply.outputs[0].contents.fp32_contents)
    return numbers.reshape(reply.outputs[0].shape)


def test_logits_are_those_of_onnxruntime_raw_and_typed(shipped, floats):
    rng = np.random.default_rng(0)
    for folder, draw in (
        (shipped[2], lambda rows: rng.integers(0, 256, (rows, 4)).astype(np.uint8)),
        (floats, lambda rows: rng.normal(size=(rows, 7)).astype(np.float32)),
    ):
        service = CloudService(folder)
        questions = [draw(1 + place % 3) for place in range(20)]
        calls = [infer(values, raw=place % 2 == 0, id=str(place)) for place, values in enumerate(questions)]
        for place, (values, reply) in enumerate(zip(questions, asked(service, *calls), strict=True)):
            np.testing.assert_allclose(logits_of(reply), service.run(values), rtol=1e-3, atol=1e-5)
            assert reply.id == str(place) and bool(reply.raw_output_contents) == (place % 2 == 0)


def test_the_server_describes_itself(shipped):
    live, ready, server, model, index, model_ready = asked(
        CloudService(shipped[2]),
        ("ServerLive", message("ServerLiveRequest")()),
        ("ServerReady", message("ServerReadyRequest")()),
        ("ServerMetadata", message("ServerMetadataRequest")()),
        ("ModelMetadata", message("ModelMetadataRequest")(name="cloud", version="1")),
        ("RepositoryIndex", message("RepositoryIndexRequest")()),
        ("ModelReady", message("ModelReadyRequest")(name="cloud")),
    )
    assert live.live and ready.ready and server.name == "attcem" and model_ready.ready
    assert list(model.inputs[0].shape) == [-1, 4] and model.outputs[0].datatype == "FP32"
    assert index.models[0].name == "cloud"


def test_wrong_requests_are_refused_with_what_to_do(floats):
    values = np.zeros((1, 7), np.float32)
    both = infer(values, raw=False)
    both[1].raw_input_contents.append(values.tobytes())
    twice = infer(values)
    twice[1].raw_input_contents.append(values.tobytes())
    none = infer(values, raw=False)
    none[1].inputs[0].ClearField("contents")
    unknown = infer(values)
    unknown[1].outputs.add(name="probability")
    wrong = {
        "NaN or Inf": infer(values + np.float32(np.nan)),
        "send [pictures, 7]": infer(np.zeros((1, 8), np.float32)),
        "send FP32": infer(np.zeros((1, 7), np.uint8)),
        "at most 64": infer(np.zeros((65, 7), np.float32)),
        "no model 'other'": infer(values, model_name="other"),
        "raw and typed": both,
        "2 raw contents": twice,
        "0 numbers": none,
        "the output 'probability'": unknown,
        "0 inputs": ("ModelInfer", message("ModelInferRequest")(model_name="cloud")),
        "": ("ModelInfer", b"\xff\xff no message"),
    }
    replies = asked(CloudService(floats), *wrong.values(), infer(values))
    for reason, reply in zip(wrong, replies, strict=False):
        assert isinstance(reply, grpc.aio.AioRpcError) and reason in reply.details(), reason
        assert "Traceback" not in reply.details()
    assert logits_of(replies[-1]).shape == (1, 5)


def test_keys_rate_and_size_hold_for_grpc_too(floats):
    values = np.zeros((1, 7), np.float32)
    service = CloudService(floats, keys=Keys([KEY]), limits=Limits(rate=2.0, body=1000))
    (refused,) = asked(service, infer(values))
    assert refused.code() is grpc.StatusCode.UNAUTHENTICATED and "Bearer" in refused.details()
    replies = asked(service, *[infer(values)] * 4, metadata=[("authorization", f"Bearer {KEY}")])
    errors = [reply.code() for reply in replies if isinstance(reply, grpc.aio.AioRpcError)]
    assert errors == [grpc.StatusCode.RESOURCE_EXHAUSTED] * 2
    (large,) = asked(service, ("ModelInfer", b"\x3a\x80\x89\x7a" + bytes(2_000_000)))
    assert large.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert b'code="429",protocol="grpc"} 2.0' in service.meters.text()


@pytest.mark.skipif(find_spec("grpc_tools") is None, reason="grpcio-tools is not installed")
def test_the_description_is_that_of_the_proto_file(tmp_path):
    made = tmp_path / "made.binpb"
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"--descriptor_set_out={made}", "open_inference.proto"]
    subprocess.run(command, cwd=DESCRIPTION.parent, check=True)
    assert made.read_bytes() == DESCRIPTION.read_bytes()
