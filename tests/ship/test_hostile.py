"""Whatever is sent, the server answers cleanly and lives on: a short version of `make hostile`."""

import asyncio

import httpx
import numpy as np
import pytest

from attcem.ship.keys import Keys
from attcem.ship.limits import Limits
from attcem.ship.service import CloudService
from tests.ship.asking import INFER, in_binary, read_logits
from tests.ship.fuzzing import check_reply, fuzz
from tests.ship.running import running

LIMITS = Limits(body=100_000, header_seconds=2.0, body_seconds=2.0)
SEED = 20_260


def survives(folder, cases, seed=SEED):
    """Statuses of the replies; afterwards the server answers as before, and holds no place for anyone."""
    service = CloudService(folder, limits=LIMITS)
    with running(service) as port:
        found = asyncio.run(fuzz(port, cases, seed))
        body, headers = in_binary(np.zeros((1, 4), np.uint8))
        reply = httpx.post(f"http://127.0.0.1:{port}{INFER}", content=body, headers=headers)
        assert reply.status_code == 200 and read_logits(reply.content, reply.headers).shape == (1, 5)
        assert service.places.taken == 0
    return found


def test_wrong_requests_get_clean_replies(shipped):
    found = survives(shipped[2], 1000)
    assert {200, 400, 404, 405, 413, 415} <= set(found) and found[400] > 100 and found[0] < 20


@pytest.mark.slow
def test_a_hundred_thousand_wrong_requests_get_clean_replies(shipped):
    assert sum(survives(shipped[2], 100_000, seed=1).values()) >= 90_000


def test_keys_that_are_no_keys_open_nothing(shipped):
    rng = np.random.default_rng(SEED)
    body, headers = in_binary(np.zeros((1, 4), np.uint8))
    key = b"0123456789abcdef"
    with running(CloudService(shipped[2], keys=Keys([key.decode()]))) as port, httpx.Client() as client:
        url = f"http://127.0.0.1:{port}{INFER}"
        wrong = [key[:-1], key + key, key.upper(), b"*", b"\xff" * 16, b"\xf0\x9f\x94\x91" * 4, b"a" * 5000]
        wrong += [bytes(rng.integers(33, 127, 16).astype(np.uint8)) for _ in range(20)]
        for each in wrong:
            reply = client.post(url, content=body, headers=[*headers.items(), (b"Authorization", b"Bearer " + each)])
            assert reply.status_code == 401 and key.decode() not in reply.text
        told = {"Authorization": f"Bearer {key.decode()}"}
        assert client.post(url, content=body, headers=headers | told).status_code == 200


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n",
        b'HTTP/1.1 400 Refused\r\ncontent-length: 21\r\n\r\n{"error":"Traceback"}',
        b"HTTP/1.1 400 Refused\r\ncontent-length: 2\r\n\r\n{}",
        b"nothing of HTTP",
    ],
)
def test_the_check_sees_what_must_not_be(reply):
    with pytest.raises(AssertionError):
        check_reply(b"", reply)
