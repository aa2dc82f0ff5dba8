"""The page over HTTP: its own files, the graphs it runs and what it shows, under a policy that lets nothing else in."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from attcem.reading.plain import read_content
from attcem.ship.artifact import LARGEST
from attcem.ship.page import DEFENDED, HALVES, OWN, PAGE, read_page
from attcem.ship.service import CloudService

BROWSER = Path(__file__).with_name("browser")
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".onnx": "application/octet-stream",
}
POLICY = {
    "default-src": "'none'",
    "script-src": "'self' 'wasm-unsafe-eval'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
HEADERS = {
    "content-security-policy": "; ".join(f"{name} {allowed}" for name, allowed in POLICY.items()),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(self), microphone=(), geolocation=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}


@dataclass(frozen=True)
class Served:
    """A file in memory, compressed if it is kept so, with a tag that changes with its content."""

    kind: str
    content: bytes
    tag: str
    zipped: bool = False

    @classmethod
    def of(cls, name: str, content: bytes) -> Served:
        zipped = name.endswith(".gz")
        kind = KINDS[Path(name.removesuffix(".gz")).suffix]
        return cls(kind, content, f'"{hashlib.sha256(content).hexdigest()[:32]}"', zipped)

    def reply(self, request: Request) -> Response:
        headers = HEADERS | {"etag": self.tag}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        content = self.content
        if self.zipped:
            headers["vary"] = "accept-encoding"
            if "gzip" in request.headers.get("accept-encoding", ""):
                headers["content-encoding"] = "gzip"
            else:
                content = gzip.decompress(content)
        return Response(content, headers=headers, media_type=self.kind)


def page_routes(folder: str | Path, service: CloudService) -> list[Route]:
    """The routes of an artifact's page, for whoever reaches the server: none of it is secret, and no key opens it."""
    folder = Path(folder)
    page = read_page(folder, service.artifact)
    facts = dataclasses.asdict(page) | {"model": service.name, "keys": bool(service.keys.digests)}
    graphs = {name: folder / PAGE / name for name in OWN} | {f"{DEFENDED}/{name}": folder / name for name in HALVES}
    files = {path.relative_to(BROWSER).as_posix(): path for path in BROWSER.rglob("*") if is_served(path)} | graphs
    served = {name.removesuffix(".gz"): Served.of(name, read_content(path, LARGEST)) for name, path in files.items()}
    served["page.json"] = Served.of("page.json", json.dumps(facts).encode())
    index = served.pop("index.html")
    return [Route("/", index.reply), *(Route(f"/page/{name}", file.reply) for name, file in served.items())]


def is_served(path: Path) -> bool:
    return Path(path.name.removesuffix(".gz")).suffix in KINDS
