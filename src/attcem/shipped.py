"""Runs as artifacts: exported with their audit, and attacked again through the very files that are shipped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from attcem.assess import audit
from attcem.config import AuditConfig
from attcem.data import Data
from attcem.defences import Guard
from attcem.experiment import check_finished, load_run
from attcem.folders import RESULT, SETTINGS, read_experiment
from attcem.models import Split, build_split, check_weights
from attcem.parts import load, make_guard, settings_with_draw
from attcem.reading.arrays import tensors_of
from attcem.reading.plain import read_content
from attcem.ship import Artifact, export, read_artifact
from attcem.ship.artifact import AUDIT, LARGEST, WEIGHTS, read_audit
from attcem.ship.deployed import deploy
from attcem.ship.predictability import predictable_messages
from attcem.ship.release import open_release
from attcem.train import under, unpack_modules
from attcem.types import Result

SPREAD = 4.0  # standard errors by which two audits of the same network may differ
LEARNING = 0.05  # share of the MSE by which attackers that learn from other noise may differ


def export_run(folder: Path, out: Path) -> Path:
    """The artifact of a finished, audited run."""
    if not (folder / RESULT).exists():
        raise ValueError(f"{folder} is not audited, and nothing is shipped without an audit: attcem audit {folder}")
    experiment = read_experiment(folder)
    check_finished(folder)
    model, guard, data = load_run(folder, device="cpu", experiment=experiment)
    return export(
        model, guard, out, audit=Result.load(folder), settings=folder / SETTINGS, class_names=data.class_names
    )


def audit_artifact(
    folder: Path, config: AuditConfig | None = None, *, progress: bool = True
) -> tuple[Result, Result, list[str]]:
    """Attack what the shipped files send; this result, the one that was shipped, and where they disagree.

    With the weights that are shipped beside the graphs the attacker has gradients, as it had of the run.
    """
    artifact = read_artifact(folder)
    before = read_audit(folder, artifact)
    experiment = read_experiment(folder / AUDIT)
    experiment = experiment if config is None else replace(experiment, audit=config)
    data = load(experiment)
    model, guard = rebuild(folder, artifact, make_guard(experiment))
    settings = settings_with_draw(experiment, data)
    deployed = deploy(folder, artifact)
    result = audit(model, guard, data, experiment.audit, experiment=settings, deployed=deployed, progress=progress)
    drawn = predictable_noise(folder, artifact)
    return result, before, drawn + disagreements(result, before, data)


def predictable_noise(folder: Path, artifact: Artifact) -> list[str]:
    """Why somebody could know the noise of the shipped device; nothing where there is no noise to know."""
    picture = np.zeros(artifact.picture.shape, np.float32)
    return predictable_messages(lambda: open_release(folder, artifact), picture) if artifact.randomness else []


def rebuild(folder: Path, artifact: Artifact, guard: Guard) -> tuple[Split, Guard]:
    """The network and guard whose weights are shipped."""
    if artifact.network is None:
        raise ValueError(f"{folder} holds a module of your own: audit it in Python, with attcem.audit(…, deployed=…)")
    tensors = tensors_of(read_content(folder / WEIGHTS, LARGEST), folder / WEIGHTS)
    check_weights(artifact.network, under(tensors, "model."))
    model = build_split(artifact.network)
    guard.setup(latent=model.latent_shape, classes=model.classes, sigma=guard.sigma)
    guard.attach(model.encoder)
    unpack_modules({"model": model, "guard": guard}, tensors)
    return model.eval(), guard.eval()


def disagreements(after: Result, before: Result, data: Data) -> list[str]:
    """What an audit of the files found that the audit of the run does not explain by chance; nothing if they agree."""
    if after.suite != before.suite or len(after.per_image["worst/mse"]) != len(before.per_image["worst/mse"]):
        return []
    found = []
    spread = SPREAD * (2 * before.accuracy * (1 - before.accuracy) / len(data.test)) ** 0.5
    if abs(after.accuracy - before.accuracy) > spread:
        found.append(f"accuracy is {after.accuracy:.4f}, that of the run was {before.accuracy:.4f}")
    apart = after.per_image["worst/mse"] - before.per_image["worst/mse"]
    allowed = SPREAD * float(np.std(apart)) / len(apart) ** 0.5 + LEARNING * before.worst.mse
    if abs(float(apart.mean())) > allowed:
        found.append(f"worst-case MSE is {after.worst.mse:.5f}, that of the run was {before.worst.mse:.5f}")
    return found
