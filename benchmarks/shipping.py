"""The whole chain: the demo's best network exported, its files attacked, served, and asked by four kinds of clients.

python -m benchmarks.shipping                # or `make ship`, which installs what it needs
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import attcem
from attcem.demo import network
from attcem.ship import OverBudget
from attcem.ship.artifact import CLOUD
from attcem.ship.graphs import open_session
from attcem.ship.release import open_release
from attcem.types import Images
from benchmarks.served import Served, served

OUT = Path("runs/ship")
PICTURES, SECONDS = 256, 1.0
BATCHES = (1, 32)

Ask = Callable[[np.ndarray], np.ndarray]  # what is sent → logits


def attcem_command(*arguments: object) -> None:
    """As typed; its failure ends the chain."""
    print("$ attcem", *arguments, flush=True)
    subprocess.run([sys.executable, "-m", "attcem", *map(str, arguments)], check=True)


def shipped() -> Path:
    """The artifact of the demo's condensed network, audited before and after it was exported."""
    _, run = network("condensed")
    shutil.rmtree(OUT, ignore_errors=True)
    attcem_command("export", run, "--out", OUT / "artifact", "--triton", OUT / "repository")
    attcem_command("audit", OUT / "artifact")
    return OUT / "artifact"


@contextmanager
def triton_clients(server: Served) -> Iterator[dict[str, Ask]]:
    """NVIDIA's own client, three ways."""
    import tritonclient.grpc
    import tritonclient.http

    def over(client: object, module: object, **binary: bool) -> Ask:
        def ask(sent: np.ndarray) -> np.ndarray:
            given = module.InferInput("sent", sent.shape, {"u": "UINT8", "f": "FP32"}[sent.dtype.kind])
            given.set_data_from_numpy(sent, **binary)
            wanted = module.InferRequestedOutput("logits", **binary)
            return client.infer("cloud", [given], outputs=[wanted]).as_numpy("logits")

        return ask

    http = tritonclient.http.InferenceServerClient(f"127.0.0.1:{server.port}")
    grpc = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{server.grpc_port}")
    assert http.is_model_ready("cloud") and grpc.is_model_ready("cloud")
    yield {
        "tritonclient, HTTP JSON": over(http, tritonclient.http, binary_data=False),
        "tritonclient, HTTP binary": over(http, tritonclient.http, binary_data=True),
        "tritonclient, gRPC": over(grpc, tritonclient.grpc),
    }
    http.close(), grpc.close()


def check_repository() -> None:
    """Triton's own message reads the configuration that was written for it."""
    from google.protobuf import text_format
    from tritonclient.grpc import model_config_pb2

    text = (OUT / "repository" / "cloud" / "config.pbtxt").read_text()
    config = text_format.Parse(text, model_config_pb2.ModelConfig())
    assert config.name == "cloud" and config.input[0].name == "sent" and config.HasField("dynamic_batching")


def throughput(ask: Ask, sent: np.ndarray, batch: int, wanted: np.ndarray) -> float:
    """Pictures a second of one client that waits for each answer, all of which must be right."""
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        place = done % (len(sent) - batch + 1)
        np.testing.assert_allclose(
            ask(sent[place : place + batch]), wanted[place : place + batch], rtol=1e-3, atol=1e-4
        )
        done += batch
    return done / (time.perf_counter() - began)


def send_pictures(artifact: Path, server: Served, test: Images, names: list[str]) -> float:
    """Pictures a second of our device, noise and budget included."""
    right, refused, began = [], 0, time.perf_counter()
    with TemporaryDirectory() as state, attcem.Device(artifact, server.url, state=state) as device:
        for picture, label in zip(test.pixels().numpy(), test.y.tolist(), strict=True):
            try:
                right.append(device.send(picture).label == names[label])
            except OverBudget:
                refused += 1
        seconds = time.perf_counter() - began
    print(f"\nattcem.Device: {len(right)} pictures sent, {np.mean(right):.3f} of them recognised;")
    print(f"{refused} refused, as near-duplicates of one that was sent: nobody audited what two of them tell\n")
    return len(right) / seconds


def print_throughputs(artifact: Path) -> None:
    read, data = attcem.read_artifact(artifact), attcem.load_data("fashion")
    test = data.test[:PICTURES]
    release, session = open_release(artifact, read), open_session(artifact / CLOUD)
    sent = np.concatenate([release(picture) for picture in test.pixels().numpy()])
    wanted = session.run(None, {"sent": sent})[0]
    with served(artifact, "--grpc-port", "0") as server, triton_clients(server) as clients:
        speed = send_pictures(artifact, server, test, data.class_names)
        asks = {"bare onnxruntime": lambda values: session.run(None, {"sent": values})[0]} | clients
        rows = {name: [throughput(ask, sent, batch, wanted) for batch in BATCHES] for name, ask in asks.items()}
    rows["attcem.Device, noise and budget included"] = [speed]
    print(f"{'pictures a second, one client that waits':<44}{'1 at a time':>12}{'32 at a time':>14}")
    for name, speeds in rows.items():
        print(f"{name:<44}" + "".join(f"{each:>{width}.0f}" for each, width in zip(speeds, (12, 14), strict=False)))


def main() -> None:
    artifact = shipped()
    check_repository()
    print_throughputs(artifact)


if __name__ == "__main__":
    main()
