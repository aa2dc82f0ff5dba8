"""The server over real connections, those of clients that dawdle, break off or lie included."""

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys

import httpx
import numpy as np
import pytest

from attcem.ship.limits import Limits
from attcem.ship.service import CloudService
from attcem.ship.serving import bound_socket, check_tls
from tests.ship.asking import INFER, in_binary, in_json, read_logits
from tests.ship.running import running

ONE = np.zeros((1, 4), np.uint8)
HURRIED = Limits(header_seconds=0.3, body_seconds=0.3, connections=4, body=100_000)


@pytest.fixture(scope="module")
def port(shipped):
    with running(CloudService(shipped[2], limits=HURRIED)) as taken:
        yield taken


@pytest.fixture(autouse=True)
def the_server_lives_on(port):
    """Whatever a test did to it."""
    yield
    body, headers = in_binary(ONE)
    reply = httpx.post(f"http://127.0.0.1:{port}{INFER}", content=body, headers=headers)
    assert reply.status_code == 200 and read_logits(reply.content, reply.headers).shape == (1, 5)


def connected(port):
    made = socket.create_connection(("127.0.0.1", port), timeout=20)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def post(body=b"", *headers):
    head = [f"POST {INFER} HTTP/1.1", "Host: cloud", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def whole(body, *headers):
    return post(body, f"Content-Length: {len(body)}", *headers)


def heard(connection):
    """Everything that is said until the connection is closed."""
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def replies(content):
    """The statuses and JSON bodies of replies that follow each other."""
    found = []
    while content:
        head, _, rest = content.partition(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", head)[1])
        found.append((int(head.split()[1]), json.loads(rest[:length])))
        content = rest[length:]
    return found


def refused(content):
    ((status, body),) = replies(content)
    return status, body["error"]


@pytest.mark.parametrize("said", [b"", b"P", b"POST / HTTP/1.1\r\nA: b\r\n"])
def test_who_does_not_end_the_headers_is_not_waited_for(port, said):
    with connected(port) as connection:
        connection.sendall(said)
        assert heard(connection) == b""


def test_blank_lines_after_a_request_keep_no_connection(port):
    body, _ = in_json(ONE)
    with connected(port) as connection:
        connection.sendall(whole(body))
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        connection.sendall(b"\r\n")
        assert heard(connection) == b""


def test_who_does_not_end_the_body_is_told(port):
    with connected(port) as connection:
        connection.sendall(post(b"{", "Content-Length: 100"))
        assert refused(heard(connection)) == (408, "the body was not there after 0.3 s: send it at once")


@pytest.mark.parametrize("announced", ["Content-Length: 10000000000", f"Content-Length: {'9' * 18}"])
def test_a_body_that_is_announced_too_long_is_not_read(port, announced):
    with connected(port) as connection:
        connection.sendall(post(b" " * 1000, announced))
        status, reason = refused(heard(connection))
        assert status == 413 and "longer than 100000 bytes" in reason


def test_a_body_in_chunks_without_end_is_cut(port):
    with connected(port) as connection:
        connection.sendall(post(b"", "Transfer-Encoding: chunked"))
        chunk = b"4000\r\n" + b" " * 0x4000 + b"\r\n"
        for _ in range(8):
            connection.sendall(chunk)
        assert refused(heard(connection))[0] == 413


def test_headers_without_end_are_cut(port):
    with connected(port) as connection:
        connection.sendall(b"GET /v2 HTTP/1.1\r\nA: " + b"b" * HURRIED.header_bytes)
        assert refused(heard(connection))[0] == 431


@pytest.mark.parametrize(
    "said",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        post(b"", "Content-Length: -1"),
        post(b"", "Content-Length: 1", "Content-Length: 2"),
        post(b"0\r\n\r\n", "Content-Length: 1", "Transfer-Encoding: chunked"),
    ],
)
def test_what_is_not_http_is_refused(port, said):
    with connected(port) as connection:
        connection.sendall(said)
        connection.shutdown(socket.SHUT_WR)
        assert {status for status, _ in replies(heard(connection))} == {400}


def test_who_has_said_everything_may_hang_up_one_way_and_is_still_answered(port):
    body, _ = in_json(ONE)
    with connected(port) as connection:
        connection.sendall(whole(body))
        connection.shutdown(socket.SHUT_WR)
        ((status, reply),) = replies(heard(connection))
        assert status == 200 and reply["outputs"][0]["shape"] == [1, 5]


@pytest.mark.parametrize("said", [b"POST /v2 HT", post(b"{", "Content-Length: 100")])
def test_who_hangs_up_halfway_is_told(port, said):
    with connected(port) as connection:
        connection.sendall(said)
        connection.shutdown(socket.SHUT_WR)
        status, reason = refused(heard(connection))
        assert status == 400 and "ended before it was whole" in reason


def test_a_connection_too_many_is_told_so(port):
    held = [connected(port) for _ in range(HURRIED.connections)]
    with connected(port) as connection:
        assert refused(heard(connection)) == (503, "4 connections are open: try again in a second")
    for each in held:
        assert heard(each) == b""
        each.close()


def test_requests_in_a_row_are_answered_in_their_order(port):
    bodies = [in_json(ONE, id=str(place))[0] for place in range(10)]
    with connected(port) as connection:
        connection.sendall(b"".join(map(whole, bodies)) + whole(b"{", "Connection: close"))
        found = replies(heard(connection))
        assert [reply.get("id") for _, reply in found] == [*map(str, range(10)), None]
        assert found[-1][0] == 400


def test_tls_is_spoken_to_who_trusts_the_certificate(shipped, certificate):
    body, headers = in_binary(ONE)
    with running(CloudService(shipped[2]), check_tls(*map(str, certificate))) as port:
        url = f"https://127.0.0.1:{port}{INFER}"
        trusted = ssl.create_default_context(cafile=str(certificate[0]))
        assert httpx.post(url, content=body, headers=headers, verify=trusted).status_code == 200
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.post(url, content=body, headers=headers)


def test_a_certificate_that_cannot_be_used_is_named(certificate, tmp_path):
    cert, key = map(str, certificate)
    for given, reason in (
        ((cert, None), "TLS needs both"),
        ((cert, str(tmp_path / "none")), "is not there"),
        ((key, key), "no certificate and its open key"),
    ):
        with pytest.raises(ValueError, match=reason):
            check_tls(*given)


def test_a_taken_port_is_named():
    with bound_socket("127.0.0.1", 0) as taken, pytest.raises(ValueError, match="cannot be taken"):
        bound_socket("127.0.0.1", taken.getsockname()[1])


def test_the_command_answers_on_this_machine_alone_and_finishes_what_it_began(shipped):
    """HTTP and gRPC until SIGTERM; the reply to a request that is being sent then is given first."""
    environment = {name: value for name, value in os.environ.items() if name != "ATTCEM_KEYS"}
    command = [sys.executable, "-m", "attcem", "serve", str(shipped[2]), "--port", "0", "--grpc-port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as server:
        told = [server.stdout.readline() for _ in range(3)]
        port = int(re.search(r"http://127\.0\.0\.1:(\d+)/v2/models/cloud", told[0])[1])
        grpc_port = int(re.search(r"gRPC +127\.0\.0\.1:(\d+)", told[1])[1])
        assert "none: whoever reaches" in told[2]
        connected(grpc_port).close()
        body, _ = in_json(ONE)
        with connected(port) as connection:
            connection.sendall(whole(body)[:-5])
            assert httpx.get(f"http://127.0.0.1:{port}/v2/health/ready").status_code == 200
            server.send_signal(signal.SIGTERM)
            with pytest.raises(OSError):
                while True:
                    connected(port).close()
            connection.sendall(whole(body)[-5:])
            assert replies(heard(connection))[0][0] == 200
        assert server.wait(20) == 0
