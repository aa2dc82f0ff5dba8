"""An artifact with what a page needs, its undefended twin, and a server of it."""

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
import torch

from attcem.data import Data, load_data
from attcem.defences import build_defence, describe
from attcem.models import split
from attcem.ship import export
from tests.report.made import make_result, scores

SENDS = 3  # that the audit attacked, and so the page's budget
NOISE = [{"noise": {"sigma": 0.2}}, {"wire": {"bits": 8}}]
SIZE = {"cut": 3, "width": 0.05, "crossing": {"pool": {"condense": 9}}}


def artifact_of(folder: Path, data: Data, chain: list[dict]) -> Path:
    """A small network that learnt nothing, with the audit of a short suite that was made up."""
    torch.manual_seed(0)
    model, guard = split("vgg11_bn", data=data, **SIZE), build_defence(chain)
    guard.setup(latent=model.latent_shape, classes=data.classes, sigma=guard.sigma)
    guard.attach(model.encoder)
    audit = make_result(defence=describe(guard), accuracy=0.1)
    audit.attacks = {"decoder_small": scores(0.05)}
    audit.curves = {"repeats": {"1": 0.03, str(SENDS): 0.02}}
    folder.mkdir(parents=True)
    settings = {
        "data": {"name": data.name},
        "model": SIZE | {"backbone": "vgg11_bn"},
        "defence": chain,
        "audit": {"suite": "smoke"},
    }
    (folder / "config.yaml").write_text(json.dumps(settings))
    facts = {"audit": audit, "settings": folder / "config.yaml", "class_names": data.class_names}
    return export(model.eval(), guard.eval(), folder / "artifact", **facts)


def artifacts(folder: Path, fashion: Data) -> tuple[Path, Path]:
    """One with noise and bytes on the wire, and its undefended twin."""
    train, test = fashion.private[:400], fashion.test[:60]
    np.savez(folder / "tiny.npz", x_train=train.x, y_train=train.y, x_test=test.x, y_test=test.y)
    data = load_data(f"npz:{folder / 'tiny.npz'}")
    return artifact_of(folder / "one", data, NOISE), artifact_of(folder / "twin", data, [])


@contextmanager
def server(artifact: Path, keys: str = "") -> Iterator[str]:
    """The address of a page, served as a user serves it."""
    environment = os.environ | ({"ATTCEM_KEYS": keys} if keys else {})
    command = [sys.executable, "-m", "attcem", "serve", str(artifact), "--page", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as running:
        try:
            assert running.stdout
            said = running.stdout.readline() + running.stdout.readline()
            yield re.findall(r"page +(\S+)/", said)[0] + "/"
        finally:
            running.terminate()
