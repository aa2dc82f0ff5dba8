"""The same page, served on this machine while runs go on: it reloads when a result is new."""

import errno
import json
import socket
import sys
from collections.abc import Iterable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from attcem.report.page import render
from attcem.report.watch import Render, Watch

ADDRESS = "127.0.0.1"
NO_RESULT = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>attcem</title><body><p>No result yet.</body></html>'
)
MOST = 32  # callers at a time; one more, and the one that has been there longest is sent away
SNIPPET = Path(__file__).with_name("templates") / "live.html"  # what keeps a page fresh, for its very end


class Server(ThreadingHTTPServer):
    """Answers for one watch, and only to those who call it by a name of this machine."""

    request_queue_size = MOST

    def __init__(self, folders: Iterable[str | Path], port: int, draw: Render = render) -> None:
        self.watch = Watch(folders, draw)
        self.callers: list[socket.socket] = []
        try:
            super().__init__((ADDRESS, port), Handler)
        except OSError as error:
            why = {errno.EADDRINUSE: "is in use", errno.EACCES: "is not open to you"}.get(error.errno or 0)
            if why is None:
                raise
            advice = "choose another with --port, or --port 0 for any that is free"
            raise ValueError(f"port {port} {why}: {advice}") from None

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        self.callers.append(request)
        while len(self.callers) > MOST:
            with suppress(OSError, IndexError):  # it may be leaving by itself
                self.callers.pop(0).shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with suppress(ValueError):
            self.callers.remove(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up or falls silent is no news; all else is."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Two answers: the page, and what to tell an open one."""

    server: Server
    timeout = 10.0  # seconds that a caller may be silent

    def do_GET(self) -> None:
        """`/` is the page, `/version` says whether it is still the newest, and how far other runs are."""
        names = {f"{host}:{self.server.server_port}" for host in (ADDRESS, "localhost")}
        if self.headers.get("Host") not in names:  # no name of this machine: another site's doing
            return self.answer(403, "text/plain", f"this page is served at {self.server.url} only")
        if self.path not in ("/", "/version"):
            return self.answer(404, "text/plain", f"nothing here: the page is at {self.server.url}")
        version, page, lines = self.server.watch.look()
        if self.path == "/version":
            return self.answer(200, "application/json", json.dumps({"version": version, "lines": lines}))
        before, end, after = (page or NO_RESULT).rpartition("</body>")
        return self.answer(200, "text/html", before + SNIPPET.read_text().replace("VERSION", version) + end + after)

    def answer(self, status: int, kind: str, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Silence: polls are no news."""


def live(folders: Iterable[str | Path], port: int, draw: Render = render) -> None:
    with Server(folders, port, draw) as server:
        print(f"open {server.url}   (Ctrl-C ends)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("\nended: `attcem report` without --live writes the page to a file")
