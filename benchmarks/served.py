"""`attcem serve` and other servers in processes of their own, pinned to a core and stopped at the end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Served:
    """Where a server answers, and its process."""

    port: int
    grpc_port: int | None
    process: subprocess.Popen

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def memory(self) -> int:
        """Resident bytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE


@contextmanager
def served(artifact: Path, *options: str, core: int | None = None) -> Iterator[Served]:
    """The cloud's half of an artifact behind `attcem serve`, which takes a free port unless told."""
    told = ["--port", "0"] if "--port" not in options else []
    command = [sys.executable, "-m", "attcem", "serve", str(artifact), *told, *options]
    with started(command, core) as process:
        assert process.stdout is not None
        said = ""
        while "keys " not in said:
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"{' '.join(command)} ended: {process.wait()}")
            said += line
        found = [re.search(rf"^{kind} .*:(\d+)", said, re.MULTILINE) for kind in ("HTTP", "gRPC")]
        ports = [int(each[1]) if each else None for each in found]
        assert ports[0] is not None
        yield Served(ports[0], ports[1], process)


@contextmanager
def started(command: Sequence[str], core: int | None = None, *, quiet: bool = False) -> Iterator[subprocess.Popen]:
    """A process with one thread for sums, on one core if it is named; told to stop at the end."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    environment.pop("ATTCEM_KEYS", None)
    errors = subprocess.DEVNULL if quiet else None
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment) as process:
        if core is not None:
            os.sched_setaffinity(process.pid, {core})
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
