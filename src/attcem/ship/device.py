"""The device: a picture in, a prediction out, and between them only what was audited leaves."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np

from attcem.ship.artifact import MANIFEST, Artifact, read_artifact, read_audit
from attcem.ship.budget import Budget, Ledger, audited_budget
from attcem.ship.delivery import Cloud, Unreachable
from attcem.ship.outbox import Outbox, new_id
from attcem.ship.pictures import check_picture, read_picture
from attcem.ship.release import open_release
from attcem.ship.request import infer_request, read_logits

NAME = "cloud"  # of the model, as `attcem serve` calls it unless told otherwise
QUEUE = 64


@dataclass(frozen=True)
class Prediction:
    """The most probable class, and the probability of each."""

    label: str
    probabilities: dict[str, float]

    @classmethod
    def of(cls, logits: np.ndarray, classes: list[str]) -> Prediction:
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        return cls(classes[int(shares.argmax())], dict(zip(classes, map(float, shares), strict=True)))


class Device:
    """Sends pictures to the cloud's half of an artifact, each with noise of its own, within a budget of sends.

    An artifact that was changed, or shipped without its audit, is refused. Without a `budget`, a picture may be sent as
    often as the audit attacked repeated sends. `state` is the folder that remembers sends across restarts.
    """

    __slots__ = ("_cloud", "_ledger", "_outbox", "_release", "artifact", "budget")

    def __init__(
        self,
        folder: str | Path,
        cloud: str,
        *,
        budget: Budget | None = None,
        state: str | Path | None = None,
        name: str = NAME,
        key: str | None = None,
        timeout: float = 10.0,
        retries: int = 3,
        queue: int = QUEUE,
        ca: str | None = None,
    ) -> None:
        folder, kept = Path(folder), Path(state) if state else default_state()
        self.artifact: Artifact = read_artifact(folder)
        audit = read_audit(folder, self.artifact)
        self.budget = budget or audited_budget(audit)
        self._release = open_release(folder, self.artifact)
        self._ledger = Ledger(kept)
        shipped = hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()[:16]
        self._outbox = Outbox(kept / f"waiting-{shipped}", self.artifact.wire, queue)
        self._cloud = Cloud(cloud, name=name, key=key, timeout=timeout, retries=retries, ca=ca)

    def send(self, picture: np.ndarray | str | Path, *, resize: bool = False) -> Prediction:
        """What the cloud makes of a picture: a PNG or JPEG file, or floats from 0 to 1, channels first.

        OverBudget where nothing may be sent any more. Unreachable where the cloud does not answer: the message then
        waits on disk for `send_waiting`.
        """
        shape = self.artifact.picture.shape
        if isinstance(picture, str | Path):
            given = read_picture(Path(picture), shape, resize=resize)
        else:
            given = check_picture(picture, shape)
        self._ledger.spend(given, self.budget, self.artifact.nats)
        id, sent = new_id(), self._release(given)
        try:
            return self._ask(id, sent)
        except Unreachable as error:
            self._outbox.put(id, sent)
            raise Unreachable(f"{error}: the message waits as {id}") from None

    def send_waiting(self) -> dict[str, Prediction]:
        """Deliver the messages that wait, the oldest first, as they were released: their ids and predictions.

        Where the cloud falls silent in between, those that got through; the others wait on.
        """
        found: dict[str, Prediction] = {}
        with self._outbox.emptying() as messages:
            try:
                for id, sent in messages:
                    found[id] = self._ask(id, sent)
            except Unreachable:
                if not found:
                    raise
        return found

    @property
    def waiting(self) -> int:
        """How many messages wait for the cloud."""
        return self._outbox.waiting()

    def _ask(self, id: str, sent: np.ndarray) -> Prediction:
        classes = self.artifact.picture.classes
        headers, body = self._cloud.ask(infer_request(id, sent))
        return Prediction.of(read_logits(headers, body, id, len(classes)), classes)

    def close(self) -> None:
        self._cloud.close()

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def default_state() -> Path:
    """Where sends are remembered, those of all artifacts together: the environment's XDG_STATE_HOME, or its default."""
    return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "attcem" / "device"
