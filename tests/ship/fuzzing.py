"""Requests that are wrong in some way, and what every reply to one must be."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter

import numpy as np

from tests.ship.asking import INFER, in_binary, in_json

PATIENCE = 20.0  # seconds for a reply
LENGTH = b"Inference-Header-Content-Length"
VALUES: tuple[bytes, ...] = (b"", b"0", b"-1", b"1", b"7", b"10000000000", b"9" * 30, b"1e3", b"0x10", b"NaN", b"\xff")
NUMBERS = (b"NaN", b"Infinity", b"-1", b"256", b"1e999", b"1.5", b"null", b"true", b'"1"', b"[]", b"{}", b"1" * 400)
HEADERS = (
    b"Transfer-Encoding: chunked",
    b"Transfer-Encoding: gzip, chunked",
    b"Content-Encoding: gzip",
    b"Expect: 100-continue",
    b"Connection: upgrade",
    b"Upgrade: websocket",
    b"Authorization: Bearer wrong",
    b"Host: a\x00b",
    b" folded: yes",
    b"A" * 5000 + b": b",
)
METHODS = (b"GET", b"PUT", b"DELETE", b"HEAD", b"OPTIONS", b"CONNECT", b"TRACE", b"post", b"PRI", b"\x16\x03\x01")
PATHS = (b"/", b"/v2", b"/v2/models/other/infer", b"/v2/models/%2e%2e/infer", b"*", b"/\xff", b"/metrics", b"//", b"/%")


def a_request(rng: np.random.Generator) -> tuple[bytes, bytes]:
    """The head and the body of a right request, or of one that a single thing is wrong with."""
    values = rng.integers(0, 256, (int(rng.integers(1, 4)), 4)).astype(np.uint8)
    body, headers = (in_json, in_binary)[rng.integers(2)](values, id="fuzz")
    lines = [b"POST %s HTTP/1.1" % INFER.encode(), b"Host: cloud", b"Content-Length: %d" % len(body)]
    lines += [LENGTH + b": " + value.encode() for value in headers.values()]
    match int(rng.integers(8)):
        case 0:
            place = int(rng.integers(2, len(lines)))
            lines[place] = lines[place].split(b":")[0] + b": " + VALUES[rng.integers(len(VALUES))]
        case 1:
            lines.insert(int(rng.integers(1, len(lines))), HEADERS[rng.integers(len(HEADERS))])
        case 2:
            lines[0] = lines[0].replace(b"POST", METHODS[rng.integers(len(METHODS))])
        case 3:
            lines[0] = b"POST %s HTTP/1.1" % PATHS[rng.integers(len(PATHS))]
        case 4:
            numbers = list(re.finditer(rb"\d+", body[:200]))
            at = numbers[rng.integers(len(numbers))]
            body = body[: at.start()] + NUMBERS[rng.integers(len(NUMBERS))] + body[at.end() :]
            lines[2] = b"Content-Length: %d" % len(body)
    return b"\r\n".join([*lines, b"", b""]), body


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Some bytes changed, put in, left out or said twice, or the end missing."""
    for _ in range(int(rng.integers(0, 4))):
        place, length = int(rng.integers(len(content) + 1)), int(rng.integers(1, 9))
        match int(rng.integers(5)):
            case 0:
                content = content[:place] + rng.bytes(length) + content[place + length :]
            case 1:
                content = content[:place] + rng.bytes(length) + content[place:]
            case 2:
                content = content[:place] + content[place + length :]
            case 3:
                content = content[:place] + content[max(0, place - 20 * length) :]
            case 4:
                content = content[:place]
    return content


def case(rng: np.random.Generator) -> bytes:
    head, body = a_request(rng)
    match int(rng.integers(3)):
        case 0:
            return damaged(head, rng) + body
        case 1:
            return head + damaged(body, rng)
    return damaged(head + body, rng)


def check_reply(said: bytes, reply: bytes) -> list[int]:
    """The statuses of what came back, all of which is HTTP, tells nothing of the inside and blames no server."""
    found = []
    while reply:
        head, ended, rest = reply.partition(b"\r\n\r\n")
        status = re.match(rb"HTTP/1\.1 (\d{3}) ", head)
        assert status and ended, (said, reply[:300])
        found.append(int(status[1]))
        if found[-1] == 100:
            reply = rest
            continue
        assert 200 <= found[-1] < 500 or found[-1] == 503, (said, reply[:300])
        length = int(re.search(rb"(?i)\r\ncontent-length: (\d+)", head)[1])  # type: ignore[index]
        body = rest[:length]
        assert not any(told in body for told in (b"Traceback", b'File "', b".py", b"Error(")), (said, body)
        if body and found[-1] >= 400:
            assert set(json.loads(body)) == {"error"}, (said, body)
        reply = rest[length:] if body else b""  # HEAD announces what it does not send
    return found


async def fuzz(port: int, cases: int, seed: int, at_a_time: int = 16) -> Counter[int]:
    """How often each status came back on so many wrong requests, each on a connection that is closed one way."""
    rng, found = np.random.default_rng(seed), Counter[int]()
    waiting = iter(range(cases))

    async def one(said: bytes) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.timeout(PATIENCE):
                writer.write(said)
                writer.write_eof()
                found.update(check_reply(said, await reader.read()))
        except ConnectionError:
            found[0] += 1  # closed before everything was said
        finally:
            writer.close()

    async def some() -> None:
        for _ in waiting:
            await one(case(rng))

    await asyncio.gather(*(some() for _ in range(at_a_time)))
    return found
