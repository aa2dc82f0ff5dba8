"""An experiment from its typed configuration to its result: data, split, train, attack, score."""

import copy
import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from attcem import train as training
from attcem.assess import audit
from attcem.assess.clients import by_client, client_flags
from attcem.config import Experiment
from attcem.data import Data
from attcem.data.clients import audited_data
from attcem.defences import Defence, Guard, check_described, describe
from attcem.device import find_device
from attcem.folders import RESULT, STATE, check_folder, read_experiment, run_folder, written_settings
from attcem.models import Split, build_split, check_weights
from attcem.parts import client_images, load, make_guard, make_model, settings_with_draw
from attcem.side_by_side import side_by_side
from attcem.types import Images, Result
from attcem.workplace import working_in

__all__ = ["Experiment", "load_clients", "load_run", "read_experiment", "run", "run_folder"]


def run(
    experiment: Experiment,
    out: str | Path | None = None,
    *,
    guard: Guard | Defence | None = None,
    resume: bool = False,
    jobs: int | None = None,
    progress: bool = True,
) -> tuple[Result, Path]:
    """Run an experiment in its folder and return its result; the result of a finished run is only read.

    A `guard` made in Python replaces the experiment's defence and is recorded there. `jobs` is the number of processes
    that attack at the same time (default: as many as pay); with a `guard` there is one, as no other process can build
    it. Under torchrun all processes train, then the first one audits alone and the others end.
    """
    if not isinstance(experiment, Experiment):
        raise ValueError(f"run takes an attcem.Experiment, not a {type(experiment).__name__}: see docs/guide.md")
    if guard is not None or training.team_size() > 1:
        jobs = 1
    if guard is None:
        guard = make_guard(experiment)
    else:
        guard = Guard.of(guard)
        experiment = replace(experiment, defence=describe(guard))
    folder = Path(out) if out is not None else Path("runs") / run_folder(experiment)
    if training.is_first():
        check_folder(folder, experiment, resume)
    if (folder / RESULT).exists():
        training.leave_team()
        return Result.load(folder), folder
    if not (folder / STATE).exists():
        for start in (experiment.train.start_from, *(getattr(link, "start_from", None) for link in guard.links)):
            if start:
                training.best_of(start)  # raises if there is no such run, before any work
    with working_in(folder) if training.is_first() else nullcontext():
        data = load(experiment)
        model = train(experiment, guard, data, folder, resume=resume, progress=progress)
        training.leave_team()
        return audit_run(folder, experiment, (model, guard, data), jobs=jobs, progress=progress), folder


def train(experiment: Experiment, guard: Guard, data: Data, folder: Path, *, resume: bool, progress: bool) -> Split:
    """The experiment's network after training in its folder, where its settings are written first."""
    find_device(experiment.train.device)  # a wrong device is an error before anything is written
    clients = client_images(experiment, data)
    if clients:
        training.refuse_processes()
    model = make_model(experiment, data)
    options: dict[str, Any] = {"seed": experiment.seed, "out": folder, "resume": resume, "progress": progress}
    with written_settings(folder, experiment) if training.is_first() else nullcontext():
        if clients:
            training.fit_clients(model, guard, data, experiment.clients, experiment.train, **options)
        else:
            training.fit(model, guard, data, experiment.train, **options)
    return model


def validate(experiment: Experiment, folder: Path) -> Result:
    """Train, then attack VALIDATION images instead of test images: settings may be chosen by these figures.

    No test image is used and no result.json is written, so these figures cannot be mistaken for test results.
    """
    if experiment.clients.count > 1:
        raise ValueError("validation images belong to no client: tune with clients.count 1")
    guard, data = make_guard(experiment), load(experiment)
    data = replace(data, test=data.validation)
    model = train(experiment, guard, data, folder, resume=True, progress=True)
    config = settings_with_draw(experiment, data)
    result = audit(model, guard, data, experiment.audit, experiment=config, keep=folder / "audit", progress=False)
    shutil.rmtree(folder / "audit", ignore_errors=True)
    return result


def audit_run(
    folder: Path, experiment: Experiment, trained: tuple[Split, Guard, Data], *, jobs: int | None, progress: bool = True
) -> Result:
    """Let `jobs` processes attack what was trained in a run's folder, judge what they found, and write the result."""
    model, guard, data = trained
    where = str(next(model.parameters()).device)
    side_by_side(folder, experiment.audit, jobs, device=where, progress=progress)
    data, clients = as_attacked(experiment, data)
    config = settings_with_draw(experiment, data)
    result = audit(model, guard, data, experiment.audit, experiment=config, keep=folder / "audit", progress=progress)
    if clients:
        flags = client_flags(model, guard, load_clients(folder, model, guard), data.validation[:8])
        table = by_client(result, (model, guard, data), clients, experiment.clients, experiment.audit)
        result = replace(result, clients=table, flags=result.flags + flags)
    result.save(folder, overwrite=True)
    shutil.rmtree(folder / "audit", ignore_errors=True)
    return result


def as_attacked(experiment: Experiment, data: Data) -> tuple[Data, list[Images]]:
    """The data as the attacker sees them, and the images of every client (none if there is only one)."""
    clients = client_images(experiment, data)
    return (audited_data(data, clients, experiment.clients) if clients else data), clients


def check_finished(folder: Path) -> None:
    """Raise on a run whose training was interrupted: with a result beside it, it would never be resumed."""
    state = training.read_state(folder / "checkpoint")
    if not state.finished:
        trained = f"{state.epoch} of {state.config.get('epochs')} epochs"
        raise ValueError(f"{folder} is trained for {trained}: type `attcem run {folder} --resume` first")


def load_run(
    folder: str | Path,
    model: Split | None = None,
    guard: Guard | Defence | None = None,
    *,
    device: str = "auto",
    experiment: Experiment | None = None,
) -> tuple[Split, Guard, Data]:
    """The network, defence and data of a run, as trained: `guard.release(model.encoder(x))` is what leaves the device.

    A network that was cut from your own module cannot be rebuilt from a file: pass it as `model`. Nor can a chain with
    a defence of your own: pass one made like the one that was trained as `guard`. Network and defence are put on
    `device`, wherever they were trained; the images stay in memory. `experiment` is that of the run, if it is known.
    """
    folder, experiment = Path(folder), experiment or read_experiment(folder)
    where = find_device(device)
    state = training.read_state(folder / "checkpoint")
    if "best" not in state.files:
        raise ValueError(f"{folder} has no validated epoch yet: continue it with `attcem run {folder} --resume`")
    tensors, data = training.read_tensors(folder / "checkpoint", state, "best"), load(experiment)
    training.refuse_other_draw(state, data.draw.get("sha256", ""), folder)
    if model is None:
        if state.spec is None:
            raise ValueError(f"{folder} was trained on a module of your own: pass load_run(..., model=your split)")
        if (state.spec["shape"], state.spec["classes"]) != (list(data.validation.shape), data.classes):
            raise ValueError(f"{folder} was trained on other data than its config.yaml names: restore both from a copy")
        check_weights(state.spec, training.under(tensors, "model."))
        model = build_split(state.spec)
    if guard is None:
        guard = make_guard(experiment)
    else:
        check_described(guard, experiment.defence)
        guard = Guard.of(guard)
    guard.setup(latent=model.latent_shape, classes=model.classes, sigma=guard.sigma)
    guard.attach(model.encoder)
    training.unpack_modules({"model": model, "guard": guard}, tensors)
    model.record = state.record
    return model.to(where).eval(), guard.to(where).eval(), data


def load_clients(folder: str | Path, model: Split, guard: Guard) -> list[Guard]:
    """Every client's own guard of a run with clients, as trained; `model` and `guard` are what `load_run` gives."""
    folder = Path(folder)
    experiment, state = read_experiment(folder), training.read_state(folder / "checkpoint")
    if experiment.clients.count == 1:
        raise ValueError(f"{folder} was trained by one client: use load_run")
    guards = [copy.deepcopy(guard) for _ in range(experiment.clients.count)]
    training.restore_guards(guards, guard, training.read_tensors(folder / "checkpoint", state, "best"))
    where = next(model.parameters()).device
    return [own.to(where).eval() for own in guards]
