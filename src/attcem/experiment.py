"""An experiment from its typed configuration to its result: data, split, train, attack, score."""

from __future__ import annotations

import copy
import hashlib
import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attcem.claim import STATE, claim, settled_in
from attcem.config import Experiment
from attcem.links import read_links
from attcem.types import Images, Result
from attcem.workplace import working_in

if TYPE_CHECKING:
    from attcem.data import Data
    from attcem.defences import Defence
    from attcem.models import Split

__all__ = ["Experiment", "load_clients", "load_run", "run", "run_folder"]


def run(
    experiment: Experiment,
    out: str | Path | None = None,
    *,
    guard: Defence | None = None,
    resume: bool = False,
    jobs: int | None = None,
    progress: bool = True,
) -> tuple[Result, Path]:
    """Do an experiment in its folder and return what it found; a finished one is only read.

    A `guard` that was made in Python takes the place of the experiment's defence, and is recorded there. So many `jobs`
    attack side by side, or as many as pay; with a guard of one's own, which no other process can build, only this one.
    Of several processes that torchrun has started, all train, the first one audits, alone, and the others leave before.
    """
    from attcem.defences import build_defence, describe
    from attcem.train import dismiss, is_first, team_size

    if guard is not None or team_size() > 1:
        jobs = 1
    if guard is None:
        guard = build_defence(experiment.defence)
    else:
        experiment = replace(experiment, defence=describe(guard))
    folder = Path(out) if out is not None else Path("runs") / run_folder(experiment)
    if is_first():
        claim(folder, experiment, resume)
    if (folder / "result.json").exists():
        dismiss()
        return Result.load(folder), folder
    if not (folder / STATE).exists():
        check_starts(experiment, guard)
    with working_in(folder) if is_first() else nullcontext():
        data = load(experiment)
        model = trained(experiment, guard, data, folder, resume=resume, progress=progress)
        dismiss()
        return audit_run(folder, experiment, (model, guard, data), jobs=jobs, progress=progress), folder


def check_starts(experiment: Experiment, guard: Defence) -> None:
    """Raise on a run to start from that is none, before any work."""
    from attcem.train import best_of

    for other in (experiment.train.start_from, *(link.start_from for link in guard.links)):
        if other:
            best_of(other)


def trained(experiment: Experiment, guard: Defence, data: Data, folder: Path, *, resume: bool, progress: bool) -> Split:
    """The experiment's network after training in its folder, where its settings are written first."""
    from attcem.device import find_device
    from attcem.train import fit, fit_clients, is_first, refuse_processes

    find_device(experiment.train.device)  # what cannot be is refused before anything is written
    clients = clients_of(experiment, data)
    if clients:
        refuse_processes()
    model = make_model(experiment, data)
    options: dict[str, Any] = {"seed": experiment.seed, "out": folder, "resume": resume, "progress": progress}
    with settled_in(folder, experiment) if is_first() else nullcontext():
        if clients:
            fit_clients(model, guard, data, experiment.clients, experiment.train, **options)
        else:
            fit(model, guard, data, experiment.train, **options)
    return model


def validate(experiment: Experiment, folder: Path, *, progress: bool = True) -> Result:
    """Train, then attack VALIDATION images in the place of test ones: what a choice of settings may look at.

    No test image is read, and no result.json is written, so that these figures never stand beside tested ones.
    """
    from attcem.assess import audit, forget
    from attcem.defences import build_defence

    if experiment.clients.count > 1:
        raise ValueError("validation images belong to no client: tune with clients.count 1")
    guard, data = build_defence(experiment.defence), load(experiment)
    data = replace(data, test=data.validation)
    model = trained(experiment, guard, data, folder, resume=True, progress=progress)
    config = recorded(experiment, data)
    result = audit(model, guard, data, experiment.audit, experiment=config, keep=folder / "audit", progress=False)
    forget(folder / "audit")
    return result


def audit_run(
    folder: Path,
    experiment: Experiment,
    trained: tuple[Split, Defence, Data],
    *,
    jobs: int | None = None,
    progress: bool = True,
) -> Result:
    """Attack what lies trained in a run's folder and write its result; an interrupted audit keeps finished attacks.

    First so many processes attack side by side, or as many as pay; what they find is judged here.
    """
    from attcem.assess import audit, forget
    from attcem.side_by_side import side_by_side

    model, guard, data = trained
    where = str(next(model.parameters()).device)
    side_by_side(folder, experiment.audit, jobs, device=where, progress=progress)
    data, clients = attacked(experiment, data)
    result = audit(
        model,
        guard,
        data,
        experiment.audit,
        experiment=recorded(experiment, data),
        keep=folder / "audit",
        progress=progress,
    )
    if clients:
        result = told_by_client(result, folder, experiment, (model, guard, data), clients)
    result.save(folder)
    forget(folder / "audit")
    return result


def attacked(experiment: Experiment, data: Data) -> tuple[Data, list[Images]]:
    """The data as the attacker meets it, and the images of every client; none where there is but one."""
    from attcem.data.clients import audited_data

    clients = clients_of(experiment, data)
    return (audited_data(data, clients, experiment.clients) if clients else data), clients


def told_by_client(
    result: Result, folder: Path, experiment: Experiment, trained: tuple[Split, Defence, Data], clients: list[Images]
) -> Result:
    """The result with what it means for every client."""
    from attcem.assess.clients import by_client, client_flags

    model, guard, data = trained
    flags = client_flags(model, guard, load_clients(folder, model, guard), data.validation[:8])
    table = by_client(result, trained, clients, experiment.clients, experiment.audit)
    return replace(result, clients=table, flags=result.flags + flags)


def load_run(
    folder: str | Path, model: Split | None = None, guard: Defence | None = None, *, device: str = "auto"
) -> tuple[Split, Defence, Data]:
    """The network, defence and data of a run, as trained: `guard.release(model.encoder(x))` is what leaves the device.

    A network that was cut from your own module cannot be rebuilt from a file: pass it as `model`. Nor can a chain with
    a defence of your own: pass one made like the one that was trained as `guard`. Network and defence are put on
    `device`, wherever they were trained; the images stay in memory.
    """
    from attcem.defences import build_defence, check_described
    from attcem.device import find_device
    from attcem.models import build_split, check_weights
    from attcem.train import read_state, read_tensors, refuse_other_draw, under, unpack_modules

    folder, where = Path(folder), find_device(device)
    experiment = read_experiment(folder, own_guard=guard is not None)
    state = read_state(folder / "checkpoint")
    if "best" not in state.files:
        raise ValueError(f"{folder} has no validated epoch yet: continue it with `attcem run {folder} --resume`")
    tensors, data = read_tensors(folder / "checkpoint", state, "best"), load(experiment)
    refuse_other_draw(state, data.draw.get("sha256", ""), folder)
    if model is None:
        if state.spec is None:
            raise ValueError(f"{folder} was trained on a module of your own: pass load_run(..., model=your split)")
        if (state.spec["shape"], state.spec["classes"]) != (list(data.validation.shape), data.classes):
            raise ValueError(f"{folder} was trained on other data than its config.yaml names: restore both from a copy")
        check_weights(state.spec, under(tensors, "model."))
        model = build_split(state.spec)
    if guard is None:
        guard = build_defence(experiment.defence)
    else:
        check_described(guard, experiment.defence)
    guard.setup(latent=model.latent_shape, classes=model.classes, sigma=guard.sigma)
    guard.attach(model.encoder, fresh=False)
    unpack_modules({"model": model, "guard": guard}, tensors)
    model.record = state
    return model.to(where).eval(), guard.to(where).eval(), data


def load_clients(folder: str | Path, model: Split, guard: Defence) -> list[Defence]:
    """Every client's own guard of a run with clients, as trained; `model` and `guard` are what `load_run` gives."""
    from attcem.train import read_state, read_tensors, restore_guards

    folder = Path(folder)
    experiment, state = read_experiment(folder, own_guard=True), read_state(folder / "checkpoint")
    if experiment.clients.count == 1:
        raise ValueError(f"{folder} was trained by one client: use load_run")
    guards = [copy.deepcopy(guard) for _ in range(experiment.clients.count)]
    restore_guards(guards, guard, read_tensors(folder / "checkpoint", state, "best"))
    where = next(model.parameters()).device
    return [own.to(where).eval() for own in guards]


def read_experiment(folder: str | Path, *, own_guard: bool = False) -> Experiment:
    """The experiment that a run's folder was made from, whose defence can be built unless an own guard is at hand."""
    from attcem.configfile import parse_experiment

    path = Path(folder) / "config.yaml"
    if not path.exists():
        raise ValueError(f"{folder} is not a run: it holds no config.yaml")
    return parse_experiment([str(path)], own_guard=own_guard)


def run_folder(experiment: Experiment) -> str:
    """A readable name, the same for the same settings on any device: a second call finds the first one's work."""
    digest = hashlib.sha256(json.dumps(experiment.on("auto").to_dict(), sort_keys=True).encode()).hexdigest()[:8]
    chain = [link.name for link in read_links(experiment.defence)] or ["none"]
    parts = [experiment.data.name.split(":")[0], experiment.model.backbone, *chain]
    return f"{experiment.name or '-'.join(parts)}-s{experiment.seed}-{digest}"


def load(experiment: Experiment) -> Data:
    """The experiment's data."""
    from attcem.data import load_data

    c = experiment.data
    return load_data(c.name, root=c.root, seed=c.seed, public=c.public, validation=c.validation, test=c.test)


def clients_of(experiment: Experiment, data: Data) -> list[Images]:
    """The images of every client; nothing where there is but one."""
    from attcem.data.clients import deal_clients

    return deal_clients(data, experiment.clients) if experiment.clients.count > 1 else []


def make_model(experiment: Experiment, data: Data) -> Split:
    """The experiment's split network, with weights that depend only on its seed."""
    import torch

    from attcem.models import split

    c = experiment.model
    bottleneck = None if c.bottleneck is None else vars(c.bottleneck)
    with torch.random.fork_rng():
        torch.manual_seed(experiment.seed)
        return split(c.backbone, data=data, cut=c.cut, bottleneck=bottleneck, width=c.width, activation=c.activation)


def recorded(experiment: Experiment, data: Data) -> dict[str, Any]:
    """The configuration as the result keeps it: with the draw that was made."""
    config = experiment.to_dict()
    config["data"]["draw"] = data.draw
    return config
