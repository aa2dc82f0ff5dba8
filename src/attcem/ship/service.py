"""The cloud's half as a service: who may ask, what is computed together, what is counted. No protocol is in it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from attcem import __version__
from attcem.ship.artifact import CLOUD, Artifact, read_artifact
from attcem.ship.batching import Batcher, profitable_rows
from attcem.ship.graphs import open_session
from attcem.ship.keys import Keys
from attcem.ship.limits import Gone, Limits, Places, Rate
from attcem.ship.meters import Meters
from attcem.ship.tensors import DTYPES, Refused, Signature

VERSION = "1"
EXTENSIONS = ["binary_tensor_data", "model_repository"]


class CloudService:
    """One verified artifact's cloud half, for any number of protocols at once."""

    def __init__(
        self,
        folder: str | Path,
        *,
        name: str = "cloud",
        limits: Limits | None = None,
        keys: Keys | None = None,
        threads: int = 1,
    ) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][\w.-]{0,99}", name, re.ASCII):
            raise ValueError(f"{name!r} cannot be part of an address: name the model with letters, digits, - _ and .")
        self.name, self.limits, self.keys, self.threads = name, limits or Limits(), keys or Keys(), threads
        self.artifact: Artifact = read_artifact(folder)
        self.signature = Signature.of(self.artifact, self.limits.batch)
        session = open_session(Path(folder) / CLOUD, threads)
        self.run: Callable[[np.ndarray], np.ndarray] = lambda values: session.run(None, {"sent": values})[0]
        one = np.zeros((1, *self.signature.sent.shape), DTYPES[self.signature.sent.datatype])
        self.meters = Meters()
        self.batcher = Batcher(self.run, profitable_rows(self.run, one, self.limits.batch), self.meters.computed)
        self.rate, self.places = Rate(self.limits.rate), Places(self.limits.concurrent)
        self.meters.places.set_function(lambda: self.places.taken)

    @property
    def server_metadata(self) -> dict[str, Any]:
        return {"name": "attcem", "version": __version__, "extensions": EXTENSIONS}

    @property
    def model_metadata(self) -> dict[str, Any]:
        inputs, outputs = [self.signature.sent.metadata], [self.signature.logits.metadata]
        return {
            "name": self.name,
            "versions": [VERSION],
            "platform": "onnxruntime_onnx",
            "inputs": inputs,
            "outputs": outputs,
        }

    @property
    def index(self) -> list[dict[str, str]]:
        return [{"name": self.name, "version": VERSION, "state": "READY", "reason": ""}]

    def check_model(self, name: str, version: str = "") -> None:
        if name != self.name or version not in ("", VERSION):
            asked = f"{name[:60]!r}" + (f" version {version[:20]!r}" if version else "")
            raise Refused(f"there is no model {asked}: ask for {self.name!r}, version {VERSION}", 404)

    @contextmanager
    def counted(self, protocol: str) -> Iterator[None]:
        """Time and outcome of a request, whatever comes of it."""
        started, code = time.perf_counter(), "200"
        try:
            yield
        except Refused as refused:
            code = str(refused.status)
            raise
        except Gone:
            code = "gone"
            raise
        except BaseException:
            code = "500"
            raise
        finally:
            self.meters.requests.labels(protocol, code).inc()
            self.meters.seconds.observe(time.perf_counter() - started)

    @contextmanager
    def admitted(self, authorization: str | None, client: str) -> Iterator[None]:
        """A place for one request of who may ask now."""
        self.rate.check(self.keys.check(authorization, client))
        with self.places.one():
            yield

    async def logits(self, values: np.ndarray) -> np.ndarray:
        found = await self.batcher(values)
        if not np.isfinite(found).all():
            raise Refused("the values are so large that no logit is finite: send what a device releases")
        return found
