"""What is asked is read exactly, or refused with what to do about it."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.ship.protocol import read_request, write_reply
from attcem.ship.tensors import Refused, Signature, TensorSpec
from tests.ship.asking import in_binary, in_json, read_logits

LOGITS = TensorSpec("logits", "FP32", (3,))
FLOATS = Signature(TensorSpec("sent", "FP32", (2, 2)), LOGITS, most=4)
BYTES = Signature(TensorSpec("sent", "UINT8", (5,)), LOGITS, most=4)


def read(body, headers, signature=FLOATS):
    return read_request(body, headers.get("inference-header-content-length"), signature)


@pytest.mark.parametrize("write", [in_json, in_binary])
@pytest.mark.parametrize("signature", [FLOATS, BYTES])
def test_what_is_written_is_read(write, signature):
    values = np.arange(3 * np.prod(signature.sent.shape)).reshape(3, *signature.sent.shape)
    values = values.astype({"FP32": np.float32, "UINT8": np.uint8}[signature.sent.datatype])
    asked = read(*write(values, id="seven"), signature)
    assert np.array_equal(asked.values, values) and asked.values.dtype == values.dtype
    assert asked.id == "seven" and asked.binary == (write is in_binary)
    logits = np.float32([[0.1, -2, 1e-30]])
    body, headers = write_reply(asked, logits, "cloud", "1")
    assert np.array_equal(read_logits(body, headers), logits)
    assert json.loads(body[: int(headers.get("inference-header-content-length", len(body)))])["id"] == "seven"


def test_nested_data_is_read_as_flat():
    values = np.random.default_rng(0).random((2, 2, 2), np.float32)
    nested = {"name": "sent", "datatype": "FP32", "shape": [2, 2, 2], "data": values.tolist()}
    assert np.array_equal(read(json.dumps({"inputs": [nested]}).encode(), {}).values, values)


def test_an_output_says_for_itself_whether_it_is_binary():
    values = np.zeros((1, 2, 2), np.float32)
    for said in (True, False):
        outputs = [{"name": "logits", "parameters": {"binary_data": said}}]
        assert read(*in_binary(values, outputs=outputs)).binary is said


def one(**changes):
    """A request with one input, changed."""
    given = {"name": "sent", "datatype": "FP32", "shape": [1, 2, 2], "data": [0, 0, 0, 0]} | changes
    return {"inputs": [{name: value for name, value in given.items() if value != "absent"}]}


WRONG = {
    "not JSON": b"{",
    "no JSON mapping": b"[]",
    "is there twice": b'{"inputs": [], "inputs": []}',
    "NaN is no JSON": b'{"inputs": [{"data": [NaN]}]}',
    "nested too deeply": b"[" * 100_000,
    "is unknown: send 'sent'": b'{"inputs":[{"name":' + b"[" * 400 + b"]" * 400 + b"}]}",
    "binary_data_size is": one(parameters={"binary_data_size": json.loads("[" * 400 + "]" * 400)}, data="absent"),
    "is not JSON": b'{"inputs":[{"name":' + b"7" * 5000 + b"}]}",
    "can't decode": b"\xff\xfe",
    "no list of mappings": {"inputs": [1]},
    "has 0 inputs": {},
    "has 2 inputs": {"inputs": one()["inputs"] * 2},
    "the input 'image' is unknown: send 'sent'": one(name="image"),
    "has datatype 'FP64': send FP32": one(datatype="FP64"),
    r"has shape \[1, 4\]: send \[pictures, 2, 2\]": one(shape=[1, 4]),
    "has shape .-1, 2, 2.": one(shape=[-1, 2, 2]),
    "no list of whole numbers": one(shape=[True, 2, 2]),
    "5 pictures in one request: send at most 4": one(shape=[5, 2, 2], data=[0] * 20),
    "has 3 numbers": one(data=[0, 0, 0]),
    "no number of type FP32": one(data=[0, 0, "1.5", 0]),
    "number of type FP32": one(data=[0, 0, None, 0]),
    "holds NaN or Inf": b'{"inputs":[{"name":"sent","datatype":"FP32","shape":[1,2,2],"data":[0,0,0,1e39]}]}',
    "too large": one(data=[0, 0, 0, 10**400]),
    "not nested as its shape": one(data=[[[0, 0], [0]]]),
    "is no list": one(data={"0": 1}),
    "data of sent is no list": one(data="absent"),
    "binary_data_size is 16, and 0 bytes": one(data="absent", parameters={"binary_data_size": 16}),
    "parameters are no mapping": one(parameters=[]),
    "the output 'probability' is unknown": one() | {"outputs": [{"name": "probability"}]},
    "is asked for 2 times": one() | {"outputs": [{"name": "logits"}] * 2},
    "sort them": one() | {"outputs": [{"name": "logits", "parameters": {"classification": 1}}]},
    "true or false": one() | {"parameters": {"binary_data_output": 1}},
    "put it in quotes": one() | {"id": 7},
}


@pytest.mark.parametrize("reason", WRONG)
def test_a_wrong_request_is_refused_with_what_to_do(reason):
    body = WRONG[reason]
    with pytest.raises(Refused, match=reason) as refused:
        read(body if isinstance(body, bytes) else json.dumps(body).encode(), {})
    assert 400 <= refused.value.status < 500 and len(str(refused.value)) < 400


@pytest.mark.parametrize("length", ["-1", "", "abc", "99999", "1e3", "٣", "9" * 5000])
def test_a_wrong_header_length_is_refused(length):
    body, _ = in_binary(np.zeros((1, 2, 2), np.float32))
    with pytest.raises(Refused, match="send the length of the JSON"):
        read_request(body, length, FLOATS)


def test_bytes_that_are_no_numbers_are_refused():
    values = np.float32([[[1, 2], [3, np.nan]]])
    with pytest.raises(Refused, match="NaN or Inf"):
        read(*in_binary(values))
    body, headers = in_binary(values)
    with pytest.raises(Refused, match="binary_data_size is 16, and 17 bytes"):
        read(body + b"!", headers)
    with pytest.raises(Refused, match="no byte: send 0 to 255"):
        read_request(in_json(np.zeros((1, 5), np.uint8))[0].replace(b"[0, 0", b"[0, 256"), None, BYTES)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = ["name", "datatype", "shape", "data", "parameters", "inputs", "outputs", "id"]


@st.composite
def damaged(draw):
    """A right request of which something was replaced: a value, bytes of it, or its announced length."""
    write = draw(st.sampled_from([in_json, in_binary]))
    body, headers = write(np.ones((1, 2, 2), np.float32))
    if draw(st.booleans()):
        end = int(headers.get("inference-header-content-length", len(body)))
        request = json.loads(body[:end])
        target = draw(st.sampled_from([request, request["inputs"][0]]))
        target[draw(st.sampled_from(KEYS))] = draw(plain)
        head = json.dumps(request).encode()
        body, headers = head + body[end:], {name: str(len(head)) for name in headers}
    if draw(st.booleans()):
        place = draw(st.integers(0, len(body)))
        body = body[:place] + draw(st.binary(max_size=6)) + body[place + draw(st.integers(0, 4)) :]
    if draw(st.booleans()):
        headers = {"inference-header-content-length": draw(st.integers(-5, 400).map(str) | st.text(max_size=6))}
    return body, headers


def is_read_or_refused(case):
    try:
        asked = read(*case)
    except Refused as refused:
        assert 400 <= refused.status < 500 and str(refused)
    else:
        assert asked.values.shape[1:] == (2, 2) and np.isfinite(asked.values).all() and len(asked.values) <= 4


@settings(max_examples=150)
@given(case=damaged())
def test_whatever_comes_is_read_or_refused(case):
    is_read_or_refused(case)


@pytest.mark.slow
@settings(max_examples=100_000)
@given(case=damaged() | st.tuples(st.binary(max_size=200), st.just({})))
def test_whatever_comes_is_read_or_refused_a_hundred_thousand_times(case):
    is_read_or_refused(case)
