"""A long load on one server, every reply checked, and a server that is killed while devices send.

python -m benchmarks.load                    # 200,000 requests; --requests N for fewer
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import attcem
from attcem.ship import Budget, Unreachable
from attcem.ship.artifact import CLOUD
from attcem.ship.device import Prediction
from attcem.ship.graphs import open_session
from attcem.ship.protocol import HEADER_LENGTH
from attcem.ship.request import infer_request
from benchmarks.harness import Figure
from benchmarks.rivals.processes import free_port
from benchmarks.served import Served, served
from benchmarks.serving import http
from benchmarks.shipping import OUT, shipped
from benchmarks.swarm import swarm

CLIENTS = (8, 16, 32, 64)
QUESTIONS = 400
DEVICES, PICTURES = 8, 120
NEAR = {"rtol": 1e-3, "atol": 1e-4}
PATH = "/v2/models/cloud/infer"


class Questions:
    """Requests of one to four pictures, in JSON or binary, each under its own number, and what each must be told."""

    def __init__(self, artifact: Path) -> None:
        wire, rng = attcem.read_artifact(artifact).wire, np.random.default_rng(0)
        session = open_session(artifact / CLOUD)
        draw = {"uint8": lambda shape: rng.integers(0, 256, shape), "float32": rng.random}[wire.dtype]
        sizes = [1 + place % 4 for place in range(QUESTIONS)]
        self.sent = [draw((rows, *wire.shape)).astype(wire.dtype) for rows in sizes]
        self.wanted = [session.run(None, {"sent": each})[0] for each in self.sent]

    def request(self, number: int) -> bytes:
        sent = self.sent[number % QUESTIONS]
        if number % 5:
            message = infer_request(str(number), sent)
            return http(PATH, message.headers, message.body)
        datatype = {"u": "UINT8", "f": "FP32"}[sent.dtype.kind]
        given = {"name": "sent", "datatype": datatype, "shape": list(sent.shape), "data": sent.ravel().tolist()}
        return http(PATH, {}, json.dumps({"id": str(number), "inputs": [given]}).encode())

    def check(self, number: int, head: bytes, body: bytes) -> None:
        """Raise unless a reply is the one to this very request."""
        assert head.startswith(b"http/1.1 200"), (number, head, body)
        announced = head.partition(f"{HEADER_LENGTH}: ".encode())[2]
        end = int(announced.split(b"\r\n", 1)[0]) if announced else len(body)
        reply = json.loads(body[:end])
        (output,) = reply["outputs"]
        assert reply["id"] == str(number), (number, reply)
        logits = np.frombuffer(body[end:], "<f4") if announced else np.float32(output["data"])
        np.testing.assert_allclose(logits.reshape(output["shape"]), self.wanted[number % QUESTIONS], **NEAR)


def long_load(server: Served, questions: Questions, requests: int) -> Iterator[Figure]:
    """Every reply right, and as much memory at the end as after the first tenth."""
    swarm(server.port, max(CLIENTS), questions.request, requests // 10, questions.check)
    memory = [server.memory]
    for clients in CLIENTS:
        began, seconds = time.perf_counter(), []
        for _ in range(5):
            seconds += swarm(server.port, clients, questions.request, requests // 20, questions.check)
            memory.append(server.memory)
        rate = len(seconds) / (time.perf_counter() - began)
        middle, late = 1000 * np.percentile(seconds, [50, 99])
        print(
            f"{clients:>3} clients {rate:>7.0f} requests a second, median {middle:5.1f} ms, p99 {late:6.1f} ms",
            flush=True,
        )
    print(f"memory {memory[0] / 2**20:.0f} MB after the first tenth, {memory[-1] / 2**20:.0f} MB at the end")
    yield Figure(f"{requests:,} requests more: largest memory / memory before", max(memory) / memory[0], 1.05, False)


@dataclass
class Sender:
    """A device, what it released and what it was told."""

    device: attcem.Device
    released: list[np.ndarray] = field(default_factory=list)
    told: dict[int, Prediction] = field(default_factory=dict)  # place of the message → prediction
    waiting: dict[str, int] = field(default_factory=dict)  # id of a message in the outbox → its place

    def __post_init__(self) -> None:
        release = self.device._release

        def recorded(picture: np.ndarray) -> np.ndarray:
            self.released.append(release(picture))
            return self.released[-1]

        self.device._release = recorded

    def send_all(self, pictures: np.ndarray) -> None:
        for picture in pictures:
            try:
                prediction = self.device.send(picture)
            except Unreachable as error:
                self.waiting[str(error).rsplit(" ", 1)[1]] = len(self.released) - 1
            else:
                self.told[len(self.released) - 1] = prediction

    def deliver(self) -> None:
        for id, prediction in self.device.send_waiting().items():
            self.told[self.waiting.pop(id)] = prediction


def killed_in_the_middle(artifact: Path, folder: Path) -> Iterator[Figure]:
    """A server that is killed with -9 while devices send, and started again."""
    session, read = open_session(artifact / CLOUD), attcem.read_artifact(artifact)
    rng, port = np.random.default_rng(1), free_port()
    pictures = rng.random((DEVICES, PICTURES, *read.picture.shape), dtype=np.float32)
    budget = Budget(picture=1, lookalikes=DEVICES * PICTURES, total=DEVICES * PICTURES)
    senders = [
        Sender(attcem.Device(artifact, f"http://127.0.0.1:{port}", budget=budget, state=folder / str(place), retries=2))
        for place in range(DEVICES)
    ]
    with ThreadPoolExecutor(DEVICES) as pool:
        with served(artifact, "--port", str(port)) as server:
            sending = [pool.submit(sender.send_all, each) for sender, each in zip(senders, pictures, strict=True)]
            while sum(len(sender.told) for sender in senders) < DEVICES * PICTURES // 3:
                time.sleep(0.01)
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
        time.sleep(1.0)
        with served(artifact, "--port", str(port)):
            [each.result() for each in sending]
            waited = sum(len(sender.waiting) for sender in senders)
            [sender.deliver() for sender in senders]
    right = 0
    for sender in senders:
        assert len(sender.released) == PICTURES and not sender.waiting and not sender.device.waiting
        for place, prediction in sender.told.items():
            logits = session.run(None, {"sent": sender.released[place]})[0][0].astype(np.float64)
            wanted = Prediction.of(logits, read.picture.classes).probabilities
            right += np.allclose(list(prediction.probabilities.values()), list(wanted.values()), **NEAR)
    print(f"killed: {waited} of {DEVICES * PICTURES} messages waited on disk; {threading.active_count()} threads left")
    yield Figure("pictures answered rightly, drawn once / pictures", right / (DEVICES * PICTURES), 1.0)


def figures(requests: int = 200_000) -> Iterator[Figure]:
    artifact = OUT / "artifact" if (OUT / "artifact" / CLOUD).exists() else shipped()
    questions = Questions(artifact)
    with served(artifact) as server:
        yield from long_load(server, questions, requests)
    with TemporaryDirectory() as folder:
        yield from killed_in_the_middle(artifact, Path(folder))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=200_000)
    found = []
    for figure in figures(parser.parse_args().requests):
        print(figure, flush=True)
        found.append(figure)
    sys.exit(not all(figure.holds for figure in found))
