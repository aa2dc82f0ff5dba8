"""Artifacts with an audit that was made up, and a cloud that answers for them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

from attcem.defences import Defence, describe
from attcem.ship import export
from attcem.ship.graphs import open_session
from attcem.types import Result
from tests.report.made import make_result
from tests.ship.small import guarded, network

LENGTH = "Inference-Header-Content-Length"


def audited_artifact(path: Path, *links: Defence, **facts) -> Path:
    """A small network under these links, with the audit of a strong attacker on 16 sends."""
    model = network()
    guard = guarded(model, *links)
    audit: Result = make_result(defence=describe(guard))
    audit.curves = {"repeats": {"1": 0.03, "16": 0.02}}
    audit.bounds = {"rate_nats": 2.5}
    for name, value in facts.items():
        setattr(audit, name, value)
    return export(model, guard, path, audit=audit, class_names=[f"class {label}" for label in range(5)])


@dataclass
class Recorded:
    """What a stand-in for the cloud got, and what it is told to do: statuses to answer with before it obeys."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    ports: set[int] = field(default_factory=set)  # one for each connection
    statuses: list[int] = field(default_factory=list)
    answer: bytes | None = None

    def tensors(self) -> list[bytes]:
        """The bytes after each request's JSON."""
        return [body[int(head[LENGTH]) :] for head, body in zip(self.headers, self.bodies, strict=True)]


@contextmanager
def recording_cloud(folder: Path) -> Iterator[Recorded]:
    """The cloud's half behind the binary infer request, and everything that came over the wire."""
    session, seen = open_session(folder / "cloud.onnx"), Recorded()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.bodies.append(body)
            seen.headers.append(dict(self.headers.items()))
            seen.ports.add(self.client_address[1])
            if seen.statuses:
                return self.reply(seen.statuses.pop(0), b'{"error": "not now"}', {})
            length = int(self.headers[LENGTH])
            request = json.loads(body[:length])
            (tensor,) = request["inputs"]
            dtype = {"UINT8": np.uint8, "FP32": np.float32}[tensor["datatype"]]
            sent = np.frombuffer(body[length:], dtype).reshape(tensor["shape"])
            logits = session.run(None, {"sent": sent})[0]
            output = {"name": "logits", "datatype": "FP32", "shape": list(logits.shape)}
            output["parameters"] = {"binary_data_size": logits.nbytes}
            head = json.dumps({"id": request["id"], "model_name": "cloud", "outputs": [output]}).encode()
            content = head + logits.tobytes() if seen.answer is None else seen.answer
            return self.reply(200, content, {LENGTH: str(len(head))} if seen.answer is None else {})

        def reply(self, status: int, content: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in (headers | {"Content-Length": str(len(content))}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a device that hangs up is no news
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    seen.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield seen
    finally:
        server.shutdown()
        server.server_close()
