"""Starts the other servers; what cannot be installed here is said in a line, and left out."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from benchmarks.served import started

CACHE = Path("~/.cache/attcem/bench").expanduser()
MLSERVER = ["mlserver>=1.6", "onnxruntime>=1.20"]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def wait_for(port: int, process: subprocess.Popen, seconds: float = 90.0) -> None:
    """Until somebody listens."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        with socket.socket() as asked:
            if asked.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"{process.args} does not listen on {port}")


@contextmanager
def fastapi_server(artifact: Path, core: int | None) -> Iterator[int | None]:
    if find_spec("fastapi") is None:
        print("FastAPI is not installed: left out", flush=True)
        yield None
        return
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.rivals.fastapi_server", str(artifact), str(port)]
    with started(command, core) as process:
        wait_for(port, process)
        yield port


@contextmanager
def mlserver(artifact: Path, folder: Path, core: int | None) -> Iterator[int | None]:
    python = mlserver_python()
    if python is None:
        yield None
        return
    shutil.copyfile(Path(__file__).with_name("mlserver_runtime.py"), folder / "mlserver_runtime.py")
    port, *others = (free_port() for _ in range(3))
    settings = {"http_port": port, "grpc_port": others[0], "metrics_port": others[1], "parallel_workers": 0}
    settings |= {"host": "127.0.0.1", "debug": False, "access_log": False}
    model = {"name": "cloud", "implementation": "mlserver_runtime.Cloud"}
    model["parameters"] = {"uri": str(artifact / "cloud.onnx")}
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "model-settings.json").write_text(json.dumps(model))
    with started([str(python.with_name("mlserver")), "start", str(folder)], core, quiet=True) as process:
        wait_for(port, process)
        yield port


def mlserver_python() -> Path | None:
    """The interpreter of its virtual environment, which is made the first time."""
    python = CACHE / "mlserver" / "bin" / "python"
    if python.with_name("mlserver").exists():
        return python
    print(f"installing MLServer in {CACHE}", flush=True)
    install = [str(python), "-m", "pip", "install", "--quiet", *MLSERVER]
    for command in ([sys.executable, "-m", "venv", str(CACHE / "mlserver")], install):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"MLServer cannot be installed here ({done.stderr.strip().splitlines()[-1][:200]}): left out")
            return None
    return python
