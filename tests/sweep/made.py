"""Sweeps of seconds, the programs that do them, and what must not differ between two of them."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from attcem.sweep.perform import LOG

TINY = """\
base:
  data: {{name: "npz:{data}"}}
  model: {{backbone: vgg11_bn, cut: 2, bottleneck: 2, width: 0.125}}
  train: {{epochs: 2, batch: 32}}
  audit: {{suite: smoke, images: 12}}
runs:
  - {{}}
  - defence.noise.sigma: 0.3
"""
TIMES = {"seconds", "images_per_second", "penalty_share", "train_s", "step_ms", "surrogate_share", "peak_mb"}
PATIENCE = 300


def write_tiny(folder: Path) -> Path:
    """A sweep of one defended and one undefended run per seed, on pictures of four shades."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    y = np.arange(184) % 4
    x = (rng.integers(0, 128, (184, 28, 28)) + 32 * y[:, None, None]).astype(np.uint8)
    arrays = {"x_train": x[:160], "y_train": y[:160], "x_test": x[160:], "y_test": y[160:]}
    np.savez(folder / "tiny.npz", **{name: array.astype(np.uint8) for name, array in arrays.items()})
    (folder / "tiny.yaml").write_text(TINY.format(data=folder / "tiny.npz"))
    return folder / "tiny.yaml"


def start(*arguments: str | Path) -> subprocess.Popen:
    """The program as a process of its own, which an interrupt reaches however the tests were started."""
    return subprocess.Popen(
        [sys.executable, "-m", "attcem", "sweep", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def wait_until(condition: Callable[[], Any]) -> Any:
    """What a condition gives once it holds."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)
    return found


def processes(out: Path) -> list[int]:
    """The processes that are at work on runs of a sweep, by the last line in each log that names one."""
    named = [re.findall(r"process (\d+) on", log.read_text()) for log in out.glob(f"*/{LOG}")]
    return [int(numbers[-1]) for numbers in named if numbers and is_alive(int(numbers[-1]))]


def is_alive(number: int) -> bool:
    """Whether there is such a process, which has not ended yet."""
    try:
        status = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def events(out: Path) -> int:
    """How many epochs, attacks and results there have been so far."""
    lines = sum(len(re.findall(r"^(?:epoch|attack) \d+", log.read_text(), re.M)) for log in out.glob(f"*/{LOG}"))
    return lines + len(list(out.glob("*/result.json")))


def content(out: Path) -> dict[str, Any]:
    """Everything that a sweep left behind, apart from times, logs and its lock."""
    kept = (path for path in out.rglob("*") if path.is_file() and path.name not in (LOG, ".sweep.lock"))
    return {str(path.relative_to(out)): timeless(path) for path in kept}


def timeless(path: Path) -> Any:
    """A file's content without what tells how long something took."""
    if path.suffix == ".json":
        return without_times(json.loads(path.read_text()))
    if path.suffix == ".csv":
        return without_times(list(csv.DictReader(path.open())))
    return path.read_bytes()


def without_times(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: without_times(value) for key, value in tree.items() if key not in TIMES}
    return [without_times(value) for value in tree] if isinstance(tree, list) else tree


def kill(number: int) -> None:
    """As the kernel does when memory runs out."""
    with suppress(ProcessLookupError):
        os.kill(number, signal.SIGKILL)
