"""An artifact with a page, from two tiny runs, and its server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from attcem.cli import main
from attcem.data import Data
from attcem.types import Result

SENDS = 3  # that the audit is made to have attacked, and so the page's budget
NOISE = [{"noise": {"sigma": 0.2}}, {"wire": {"bits": 8}}]


def artifact_of(folder: Path, data: Path, defence: list) -> Path:
    """Train and audit a small network for seconds, and export it."""
    settings = {
        "data": {"name": f"npz:{data}"},
        "model": {"backbone": "vgg11_bn", "cut": 3, "width": 0.05, "crossing": {"pool": {"condense": 9}}},
        "defence": defence,
        "train": {"epochs": 1, "batch": 32},
        "audit": {"suite": "smoke", "images": 40},
    }
    folder.mkdir()
    (folder / "tiny.yaml").write_text(json.dumps(settings))
    assert main(["run", str(folder / "tiny.yaml"), "--out", str(folder / "run")]) == 0
    audit = Result.load(folder / "run")
    audit.curves = {**audit.curves, "repeats": {"1": 0.03, str(SENDS): 0.02}}
    audit.save(folder / "run")
    assert main(["export", str(folder / "run"), "--out", str(folder / "artifact")]) == 0
    return folder / "artifact"


def artifacts(folder: Path, data: Data) -> tuple[Path, Path]:
    """One with noise and bytes on the wire, and its undefended twin."""
    train, test = data.private[:400], data.test[:60]
    np.savez(folder / "tiny.npz", x_train=train.x, y_train=train.y, x_test=test.x, y_test=test.y)
    return artifact_of(folder / "one", folder / "tiny.npz", NOISE), artifact_of(folder / "twin", folder / "tiny.npz", [])


@contextmanager
def server(artifact: Path, keys: str = "") -> Iterator[str]:
    """The address of a page, served as a user serves it."""
    environment = os.environ | ({"ATTCEM_KEYS": keys} if keys else {})
    command = [sys.executable, "-c", "import sys; from attcem.cli import main; sys.exit(main())", "serve"]
    command += [str(artifact), "--page", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as running:
        try:
            assert running.stdout
            said = [running.stdout.readline() for _ in range(2)]
            yield re.findall(r"page +(\S+)", "".join(said))[0]
        finally:
            running.terminate()
