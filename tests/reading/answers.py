"""Every reader of a run's folder, and what is true of an answer that is right."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from attcem.assess.judge import read as read_evaluator
from attcem.attacks.linear import Linear
from attcem.compare import FORMATS, compare, comparison_tables
from attcem.config import Experiment
from attcem.configfile import parse_experiment
from attcem.experiment import load_run, read_experiment
from attcem.folders import settings_text
from attcem.listing import is_sweep
from attcem.report import render
from attcem.report.watch import Watch, how_far
from attcem.runs import read_runs
from attcem.sweep.driver import finished
from attcem.train.checkpoint import STATE, read_state, read_tensors
from attcem.train.packing import unpack_optimisers
from attcem.types import Explanation, Result
from tests.reading.whole import PICTURES, kept_in, planned, stepped


def alike(one: Any, other: Any) -> bool:
    """Whether two trees are equal, with NaN equal to itself."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    nan = isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    return nan or one == other


def result(folder: Path) -> None:
    read = Result.load(folder).to_json()
    written = json.loads((folder / "result.json").read_text())
    assert alike({key: read[key] for key in written}, written)


def page(folder: Path) -> None:
    results, _ = read_runs([folder])
    draw(results)


def bare_page(folder: Path) -> None:
    draw([dataclasses.replace(run, per_image={}) for run in read_runs([folder]).results])


def draw(results: list[Result]) -> None:
    """What could be read can be shown."""
    try:
        assert "</html>" in render(results, comparison_tables(results, draws=20))
    except ValueError as error:
        raise AssertionError("it was read, but cannot be shown") from error


def compared(folder: Path) -> None:
    found = compare([*companions(), Result.load(folder)], draws=20, at_accuracy=0.889)
    for write in FORMATS.values():
        assert write(found)


@cache
def companions() -> list[Result]:
    """Runs that can be compared with the one that is damaged."""
    return [planned(defence) for defence in ({}, {"noise": {"sigma": 0.5}}, {"gmm": {"lam": 1}})]


def watched(folder: Path) -> None:
    _, page, lines = Watch([folder], render).look()
    assert bool(page) != bool(lines), "a run is shown, or named"
    assert all(re.search("cannot be read: (ValueError|OtherSchema)", line) for line in lines), lines


def distance(folder: Path) -> None:
    said = how_far(folder)
    assert said.isprintable() and len(said) < 200


def settings(folder: Path) -> None:
    is_sweep(folder / "config.yaml")
    read: Experiment = read_experiment(folder)
    (folder / "again.yaml").write_text(settings_text(read))
    assert alike(parse_experiment([str(folder / "again.yaml")]).to_dict(), read.to_dict())


def state(folder: Path) -> None:
    read = dataclasses.asdict(read_state(folder / "checkpoint"))
    written = json.loads((folder / "checkpoint" / STATE).read_text())
    assert alike({key: read[key] for key in written}, written)


def trust_tensors(folder: Path) -> None:
    """Let the state vouch for its tensors, whatever they are."""
    path = folder / "checkpoint" / STATE
    written = json.loads(path.read_text())
    for entry in written["files"].values():
        content = (folder / "checkpoint" / entry["name"]).read_bytes()
        entry["sha256"] = hashlib.sha256(content).hexdigest()
    path.write_text(json.dumps(written))


def loaded(folder: Path) -> None:
    model, guard, data = load_run(folder, device="cpu")
    sent = guard.release(model.encoder(data.test[:2].pixels()))
    assert model.decoder(sent).shape == (2, data.classes)


def trusted(folder: Path) -> None:
    trust_tensors(folder)
    loaded(folder)


def optimiser(folder: Path) -> None:
    layer = nn.Linear(3, 2)
    fresh = stepped(layer)
    read = read_state(folder / "checkpoint")
    unpack_optimisers({"": fresh}, read_tensors(folder / "checkpoint", read, "last"), read.optimiser)
    layer(torch.ones(1, 3)).sum().backward()
    fresh.step()


def trusted_optimiser(folder: Path) -> None:
    trust_tensors(folder)
    optimiser(folder)


def explanations(folder: Path) -> None:
    for found in Explanation.read(folder / "explain"):
        assert found.title is not None and found.png.startswith(b"\x89PNG")


def kept_attack(folder: Path) -> None:
    found = kept_in(folder).find("linear", Linear())
    assert found is None or (found.images.ndim == 4 and all(isinstance(word, str) for word in found.flags))


def swept(folder: Path) -> None:
    found = finished(folder)
    assert found is None or 0 <= found.accuracy <= 1


def judge(folder: Path) -> None:
    found = read_evaluator(folder / "judge.safetensors", PICTURES, 2)
    assert found is None or (0 <= found.accuracy <= 1 and found.recognised(PICTURES.pixels(), PICTURES.y).shape == (4,))
