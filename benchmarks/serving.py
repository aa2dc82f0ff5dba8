"""What serving costs next to bare onnxruntime on one core and next to other servers, and what a device adds."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from attcem.defences import Guard, Noise, Wire
from attcem.demo import CONDENSED
from attcem.models import Split, split
from attcem.ship import export, read_artifact
from attcem.ship.artifact import CLOUD
from attcem.ship.graphs import open_session, write_graph
from attcem.ship.halves import DeviceHalf
from attcem.ship.release import open_release
from attcem.ship.request import infer_request
from benchmarks.harness import Figure, ratio, seconds
from benchmarks.rivals.processes import fastapi_server, mlserver
from benchmarks.served import served
from benchmarks.swarm import swarm

SHAPE, CLASSES = (1, 28, 28), 10
CROSSINGS: dict[str, dict | None] = {"map": None, "condensed": CONDENSED}
ROUNDS, CLIENTS = 7, 8
GOALS = {"batch 1": 0.40, "batch 32": 0.90, "FastAPI + torch + JSON": 5.0, "MLServer": 2.0}
CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
SERVER, CLIENT = (CORES[0], CORES[-1]) if CORES else (None, None)


def network(crossing: str) -> Split:
    torch.manual_seed(0)
    return split("vgg11_bn", shape=SHAPE, classes=CLASSES, cut=4, width=0.25, crossing=CROSSINGS[crossing]).eval()


def guarded(model: Split, *links: torch.nn.Module) -> Guard:
    guard = Guard(*links)
    guard.setup(latent=model.latent_shape, classes=CLASSES, sigma=guard.sigma)
    guard.attach(model.encoder)
    return guard.eval()


def artifact(crossing: str, folder: Path) -> Path:
    model = network(crossing)
    return export(model, guarded(model, Noise(0.1), Wire(bits=8)), folder / crossing)


def http(path: str, headers: dict[str, str], body: bytes) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: cloud", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, *(f"{name}: {value}" for name, value in headers.items()), "", ""]).encode() + body


def in_binary(sent: np.ndarray) -> bytes:
    message = infer_request("0", sent)
    return http("/v2/models/cloud/infer", message.headers, message.body)


def in_json(sent: np.ndarray) -> bytes:
    given = {"name": "sent", "datatype": "UINT8", "shape": list(sent.shape), "data": sent.ravel().tolist()}
    headers = {"Content-Type": "application/json"}
    return http("/v2/models/cloud/infer", headers, json.dumps({"inputs": [given]}).encode())


def for_fastapi(latent: np.ndarray) -> bytes:
    content = {"shape": list(latent.shape), "data": latent.ravel().tolist()}
    return http("/infer", {"Content-Type": "application/json"}, json.dumps(content).encode())


def asked(port: int, request: bytes, count: int, clients: int = CLIENTS) -> Callable[[], float]:
    """Seconds for each of so many answers."""

    def check(number: int, head: bytes, body: bytes) -> None:
        assert head.startswith(b"http/1.1 200"), (head, body)

    return lambda: seconds(lambda: swarm(port, clients, lambda number: request, count, check)) / count


def bare(folder: Path, sent: np.ndarray, count: int) -> Callable[[], float]:
    """Seconds for each of so many runs of the graph, on the server's core."""
    session = open_session(folder / CLOUD)

    def run() -> float:
        pin(SERVER)
        found = seconds(lambda: [session.run(None, {"sent": sent}) for _ in range(count)]) / count
        pin(CLIENT)
        return found

    return run


def pin(core: int | None) -> None:
    if core is not None:
        os.sched_setaffinity(0, {core})


def medians(contenders: dict[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Seconds of each contender in every round; each round runs all of them, and the first is thrown away."""
    rounds = [{name: call() for name, call in contenders.items()} for _ in range(ROUNDS + 1)][1:]
    return {name: [each[name] for each in rounds] for name in contenders}


def apart(found: dict[str, list[float]], slow: str, fast: str) -> float:
    """How many times as fast, as the median over rounds."""
    return statistics.median(one / other for one, other in zip(found[slow], found[fast], strict=True))


def throughput(crossing: str, folder: Path) -> Iterator[Figure]:
    """Answers a second of our server and of others, as shares of the runs a second of bare onnxruntime."""
    shipped = artifact(crossing, folder)
    wire = read_artifact(shipped).wire
    rng = np.random.default_rng(0)
    one, many = (rng.integers(0, 256, (rows, *wire.shape)).astype(np.uint8) for rows in (1, 32))
    latent = rng.random((1, *wire.latent), np.float32)
    with ExitStack() as stack:
        ours = stack.enter_context(served(shipped, core=SERVER)).port
        contenders = {"bare 1": bare(shipped, one, 1000), "bare 32": bare(shipped, many, 60)}
        contenders |= {"batch 1": asked(ours, in_binary(one), 1500), "batch 32": asked(ours, in_binary(many), 60)}
        contenders |= {"alone": asked(ours, in_binary(one), 800, clients=1), "JSON": asked(ours, in_json(one), 800)}
        rivals = {"FastAPI + torch + JSON": (stack.enter_context(fastapi_server(shipped, SERVER)), for_fastapi(latent))}
        rivals["MLServer"] = (stack.enter_context(mlserver(shipped, folder, SERVER)), in_json(one))
        for name, (port, request) in rivals.items():
            if port is not None:
                contenders[name] = asked(port, request, 300)
        pin(CLIENT)
        found = medians(contenders)
    goals = GOALS if crossing == "map" else {}
    for name in ("batch 1", "batch 32"):
        share = apart(found, f"bare {name.split()[1]}", name)
        yield Figure(f"{crossing}: HTTP binary at {name} / bare onnxruntime", share, goals.get(name))
    yield Figure(f"{crossing}: the same at batch 1, one client alone", apart(found, "bare 1", "alone"))
    yield Figure(f"{crossing}: HTTP JSON at batch 1 / bare onnxruntime", apart(found, "bare 1", "JSON"))
    for name, (port, _) in rivals.items():
        if port is not None:
            yield Figure(f"{crossing}: HTTP binary at batch 1 / {name}", apart(found, name, "batch 1"), goals.get(name))


def bytes_of_a_message(crossing: str) -> float:
    """The body with 8 bits a number over that with the same numbers as JSON."""
    latent = network(crossing).latent_shape
    values = np.random.default_rng(0).random((1, *latent), np.float32)
    given = {"name": "sent", "datatype": "FP32", "shape": list(values.shape), "data": values.ravel().tolist()}
    return len(infer_request("0" * 16, values.astype(np.uint8)).body) / len(json.dumps({"inputs": [given]}))


def noise_on_the_device(crossing: str, folder: Path) -> float:
    """A picture's release with noise from the operating system over the same half without any."""
    shipped, model = folder / crossing, network(crossing)
    guard = guarded(model, Wire(bits=8, low=0.0, high=1.0))
    write_graph(DeviceHalf(model, guard), [torch.rand(2, *SHAPE)], ["image"], "sent", folder / f"clean {crossing}")
    session, release = open_session(folder / f"clean {crossing}.onnx"), open_release(shipped, read_artifact(shipped))
    picture = np.random.default_rng(0).random(SHAPE, dtype=np.float32)
    clean = {"image": picture[None]}
    return ratio(
        lambda: [release(picture) for _ in range(100)],
        lambda: [session.run(None, clean) for _ in range(100)],
        rounds=31,
    )


def figures() -> Iterator[Figure]:
    """The goals were set on the demo's whole map, 1,568 numbers; `attcem run` sends the condensed 64 unless told."""
    with TemporaryDirectory() as made:
        for crossing in CROSSINGS:
            yield from throughput(crossing, Path(made))
            goal = 1 / 15 if crossing == "map" else None
            yield Figure(f"{crossing}: bytes with 8 bits / bytes of JSON", bytes_of_a_message(crossing), goal, False)
            added = noise_on_the_device(crossing, Path(made))
            yield Figure(f"{crossing}: device with cryptographic noise / without", added, 3.0, at_least=False)


if __name__ == "__main__":
    for figure in figures():
        print(figure, flush=True)
