"""Downloads from a local server that misbehaves in every way we know."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from attcem.data import DATASETS, get_data
from attcem.data.entry import Published
from attcem.data.fetch import fetch
from tests.data import tiny_archives as tiny

CONTENT = np.random.default_rng(0).bytes(300_000)
SHA256 = "sha256:" + hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves `content`; each request takes the next behaviour of the plan, the last one for ever."""

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.plan, self.ranges = content, [send], []
        self.url = f"http://127.0.0.1:{self.server_port}/archive"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.ranges.append(self.headers.get("Range"))
        behave = self.server.plan.pop(0) if len(self.server.plan) > 1 else self.server.plan[0]
        behave(self, self.server.content)

    def log_message(self, *_) -> None:
        pass

    def answer(self, status: int, body: bytes, announced: int | None = None, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if announced is None else announced))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True


def wanted(handler: Handler) -> int:
    return int((handler.headers.get("Range") or "bytes=0-").removeprefix("bytes=").removesuffix("-"))


def send(handler: Handler, content: bytes, keep: int | None = None) -> None:
    start = wanted(handler)
    if start >= len(content):
        handler.answer(416, b"", Content_Range=f"bytes */{len(content)}")
    elif start:
        where = f"bytes {start}-{len(content) - 1}/{len(content)}"
        handler.answer(206, content[start:][:keep], len(content) - start, Content_Range=where)
    else:
        handler.answer(200, content[:keep], len(content))


def drop(handler: Handler, content: bytes) -> None:
    send(handler, content, keep=100_000)


def hang_up(handler: Handler, content: bytes) -> None:
    handler.close_connection = True


def ignore_range(handler: Handler, content: bytes) -> None:
    handler.answer(200, content)


def wrong_range(handler: Handler, content: bytes) -> None:
    handler.answer(206, content[5:], Content_Range=f"bytes 5-{len(content) - 1}/{len(content)}")


def without_length(handler: Handler, content: bytes) -> None:
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(content)
    handler.close_connection = True


def fail(status: int):
    return lambda handler, content: handler.answer(status, b"no")


@pytest.fixture
def server():
    with Server(CONTENT) as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield running
        running.shutdown()


@pytest.fixture
def get(server, tmp_path):
    part = tmp_path / "cache" / "archive.part"

    def call(**options):
        options = {"checksums": [SHA256], "progress": False, "pause": 0.0, "timeout": 5.0} | options
        return fetch(server.url, part, **options)

    call.part = part
    return call


def test_plain_download(server, get):
    assert get().read_bytes() == CONTENT and server.ranges == [None]


def test_resumes_after_every_drop(server, get):
    server.plan = [drop, drop, hang_up, send]
    assert get().read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=100000-", "bytes=200000-", "bytes=200000-"]


def test_a_later_call_resumes(server, get):
    server.plan = [drop, hang_up]
    with pytest.raises(ValueError, match=r"100,000 bytes are kept.*--from FILE"):
        get(attempts=2)
    server.plan, server.ranges = [send], []
    assert get().read_bytes() == CONTENT and server.ranges == ["bytes=100000-"]


def test_ctrl_c_keeps_the_part(server, get, monkeypatch):
    server.plan = [drop]

    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("attcem.data.fetch.time.sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        get()
    assert get.part.read_bytes() == CONTENT[:100_000]


def test_server_that_ignores_range(server, get):
    server.plan = [drop, ignore_range]
    assert get().read_bytes() == CONTENT and server.ranges == [None, "bytes=100000-"]


def test_server_that_sends_another_range(server, get):
    server.plan = [drop, wrong_range, send]
    assert get().read_bytes() == CONTENT


def test_body_without_a_length(server, get):
    server.plan = [without_length]
    assert get().read_bytes() == CONTENT


@pytest.mark.parametrize("status", [429, 500, 503])
def test_busy_server_is_asked_again(server, get, status):
    server.plan = [fail(status), fail(status), send]
    assert get().read_bytes() == CONTENT


@pytest.mark.parametrize("status", [403, 404, 410, 416])
def test_refusal_is_final(server, get, status):
    server.plan = [fail(status)]
    with pytest.raises(ValueError, match=rf"{server.url} answers {status} .*--from FILE"):
        get()
    assert len(server.ranges) == 1 and not get.part.parent.exists()


def test_gives_up_on_a_dead_server(server, get):
    server.plan = [hang_up]
    with pytest.raises(ValueError, match=rf"{server.url} cannot be fetched"):
        get(attempts=3)
    assert len(server.ranges) == 3


def test_short_body_is_never_taken_for_the_file(server, get):
    server.plan = [lambda handler, content: handler.answer(200, content[:500])]
    with pytest.raises(ValueError, match=rf"has checksum sha256:\w+ and should have {SHA256}.*removed"):
        get()
    assert not get.part.exists()


@pytest.mark.parametrize("present", [CONTENT, CONTENT + b"more", b"x" * len(CONTENT), b""])
def test_a_part_as_long_as_the_file_or_longer(server, get, present):
    get.part.parent.mkdir()
    get.part.write_bytes(present)
    assert get().read_bytes() == CONTENT
    assert bool(server.ranges) == (present != CONTENT), "a complete part needs no network"


def test_limit(server, get):
    with pytest.raises(ValueError, match="more than 1,000 bytes"):
        get(limit=1000)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1/a", "data:,a"])
def test_other_addresses(url, tmp_path):
    with pytest.raises(ValueError, match="no http address"):
        fetch(url, tmp_path / "part", [SHA256])


@pytest.fixture
def published(server, tmp_path, monkeypatch):
    """The ORL line of the table, moved to the local server."""
    archive = tiny.orl(tmp_path / "archive")
    server.content = archive.read_bytes()
    checksum = tiny.sha256(archive)
    archive.unlink()
    entry = Published("local", {server.url: checksum}, DATASETS["orl"].parse)
    monkeypatch.setitem(DATASETS, "orl", entry)
    return entry


def test_get_leaves_one_file(published, tmp_path):
    assert get_data("orl", root=tmp_path / "cache") == tmp_path / "cache" / "orl.npz"
    assert [file.name for file in (tmp_path / "cache").iterdir()] == ["orl.npz"]


def test_get_with_a_wrong_checksum(published, tmp_path):
    with pytest.raises(ValueError, match=r"should have md5:0000.*--checksum"):
        get_data("orl", root=tmp_path / "cache", checksum="md5:" + "0" * 32)
    assert not list((tmp_path / "cache").iterdir())


def test_get_of_a_hostile_archive(published, server, tmp_path):
    server.content = tiny.write_zip(tmp_path / "evil", {"../evil": b""}).read_bytes()
    with pytest.raises(ValueError, match="points outside"):
        get_data("orl", root=tmp_path / "cache", checksum=tiny.sha256(tmp_path / "evil"))
    assert not list((tmp_path / "cache").iterdir())
