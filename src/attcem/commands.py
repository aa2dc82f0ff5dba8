"""What each command does: it takes its options, calls a room and prints. Heavy imports wait inside, for help."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attcem.configfile import UsageError, parse_experiment
from attcem.listing import LISTS, find_file, preset_paths, sweep_paths, yaml_paths
from attcem.terminal import interruptible, tell

if TYPE_CHECKING:
    from attcem.config import Experiment
    from attcem.ship import Prediction
    from attcem.types import Result


def demo(options: Namespace) -> None:
    """The whole story on embedded data, in minutes."""
    from attcem.demo import demo

    tell("", f"open {demo(options.out, device=options.device)}")


def show_list(options: Namespace) -> None:
    """What can be named in a configuration."""
    for title in [options.list] if options.list else LISTS:
        entries = LISTS[title]()
        if not options.list:
            tell("", title)
        width = max(map(len, entries), default=0)
        tell(*(f"  {name:<{width}}  {text}" for name, text in entries.items()))


def run(options: Namespace) -> None:
    """Train a split network, attack it, and write the result."""
    out, arguments = options.out, options.settings
    if arguments and not arguments[0].startswith("-"):
        named = Path(arguments[0])
        out = out or (named if named.is_dir() else None)
        file = named / "config.yaml" if named.is_dir() else find_file(arguments[0], yaml_paths(), preset_paths())
        arguments = [str(file), *arguments[1:]]
    elif not any(argument.startswith(("--config", "--model", "--defence")) for argument in arguments):
        arguments = [str(preset_paths()["recommended"]), *arguments]
    experiment = parse_experiment(arguments).on(options.device)
    from attcem.experiment import run, run_folder

    folder = Path(out or Path("runs") / run_folder(experiment))
    with interruptible(f"every finished epoch is kept: attcem run {folder} --resume"):
        result, folder = run(experiment, folder, resume=options.resume, jobs=options.jobs)
    print_result(result, folder)


def sweep(options: Namespace) -> None:
    """Do a grid of experiments, several at a time, and complete what is missing."""
    from attcem.sweep.driver import do_sweep
    from attcem.sweep.grid import read_sweep

    if options.address and options.engine != "ray":
        raise UsageError("--address is for --engine ray")
    path = find_file(options.file, sweep_paths())
    runs = read_sweep(path, preset_paths(), seeds=options.seeds, overrides=options.settings, device=options.device)
    if options.dry_run:
        tell(*(f"{run.name}   {run.label}" for run in runs))
        return
    out = Path(options.out or Path("runs") / path.stem).absolute()
    do_sweep(runs, out, **chosen(options, "engine", "jobs", "address", "resume"))


def tune(options: Namespace) -> None:
    """Search for settings that keep accuracy and hide most, judged on validation images only."""
    from attcem.sweep.table import figures
    from attcem.tune import best_trials, read_search, tune

    base = [str(find_file(options.base, preset_paths())), *options.settings]
    search = read_search(base, options.range, options.log_range, options.choice, options.device)
    out = Path(options.out or Path("runs") / f"tune-{Path(options.base).stem}")
    with interruptible("finished trials and epochs are kept: the same command goes on"):
        study = tune(search, out, options.trials, seed=options.seed)
    for trial in best_trials(study, options.at_accuracy):
        tell(f"validation {figures(*trial.values)}   {search.command(trial.params)}")


def cut(options: Namespace) -> None:
    """Try every place to cut a network, and every form of what crosses; recommend one, and say how sure that is."""
    from attcem.cut import FORMS, advise, draw, places_of, recommend, search, table

    base = [str(find_file(options.base, preset_paths())), f"--audit.suite={options.suite}", *options.settings]
    experiment = parse_experiment(base).on(options.device)
    places, misfits = places_of(experiment, options.forms or FORMS, options.cuts)
    tell(*misfits)
    if options.dry_run:
        tell(*(run.label for place in places for run in place.runs(experiment, options.seeds)))
        return
    out = Path(options.out or Path("runs") / f"cut-{Path(options.base).stem}").absolute()
    with interruptible("finished runs and epochs are kept: the same command goes on"):
        candidates, failed = search(experiment, places, out, **chosen(options, "seeds", "jobs"))
    if candidates:
        best, shares = recommend(candidates, **chosen(options, "lose", "compute"))
        tell("", *table(candidates, best, shares), "", *advise(best, shares))
        tell(f"picture       {draw(candidates, best, out / 'cut.png')}")
    if failed:
        raise ValueError(
            f"{failed} runs failed, each with a log.txt in {out}: mend the cause, then type the same again"
        )


def audit(options: Namespace) -> None:
    """Attack a trained run and write its result."""
    from attcem.config import with_options
    from attcem.experiment import audit_run, check_finished, load_run, read_experiment
    from attcem.workplace import working_in

    folder = Path(options.run)
    shipped = (folder / "artifact.json").exists()
    experiment = read_experiment(folder / "audit" if shipped else folder)
    asked = chosen(options, "suite", "threat", "images", "seed")
    given = {name: value for name, value in asked.items() if value is not None}
    experiment = with_options(experiment, {"audit": with_options(experiment.audit, given)})
    if shipped:
        audit_shipped(folder, experiment)
        return
    with interruptible("finished attacks are kept: the same command goes on after them"), working_in(folder):
        trained = load_run(folder, device=options.device, experiment=experiment)
        check_finished(folder)
        result = audit_run(folder, experiment, trained, jobs=options.jobs)
    print_result(result, folder)


def audit_shipped(folder: Path, experiment: Experiment) -> None:
    """Attack what the files of an artifact send, and fail where that is not what was audited before."""
    from attcem.shipped import audit_artifact

    result, before, apart = audit_artifact(folder, experiment.audit)
    tell(f"accuracy      {result.accuracy:.4f}   that of the run {before.accuracy:.4f}")
    tell(f"worst case    MSE {result.worst.mse:.5f}   that of the run {before.worst.mse:.5f}")
    if apart:
        raise ValueError(f"{folder} is not what was audited: {'; '.join(apart)}")


def export(options: Namespace) -> None:
    """Write both halves of an audited run as an artifact that can be shipped."""
    from attcem.ship.triton import check_free, write_repository
    from attcem.shipped import export_run

    if options.triton:
        check_free(options.triton)
    folder = export_run(Path(options.run), Path(options.out))
    tell(f"artifact      {folder}", f"attack it     attcem audit {folder}")
    if options.triton:
        tell(f"repository    {write_repository(folder, options.triton).parent}")


def explain(options: Namespace) -> None:
    """Draw what a run's defence looks at: attention, slots, gates, latent."""
    from attcem.explain import explain

    folder = Path(options.run)
    for found in explain(folder, **chosen(options, "images", "tsne", "device")):
        tell(f"{folder / 'explain' / found.file}   {found.title}")
    if not (folder / "result.json").exists():
        tell(f"a page needs an audit first: attcem audit {folder}")
    tell(f"page          attcem report {folder} --out report.html")


def report(options: Namespace) -> None:
    """One HTML page from one or more runs."""
    from attcem.compare import comparison_tables
    from attcem.language import language
    from attcem.report import render, write_report
    from attcem.report.live import live

    say = language(options.lang)
    if options.live:
        live(options.runs, options.port, lambda results: render(results, comparison_tables(results, say), say))
        return
    folder = Path(options.out).parent
    if not folder.is_dir():
        raise UsageError(f"--out {options.out}: there is no folder {folder}: make it, or choose another")
    with readable_runs(options.runs) as results:
        tell(f"open {write_report(results, options.out, comparison_tables(results, say), say)}")


def figures(options: Namespace) -> None:
    """Figures for a paper, from one or more runs."""
    from attcem.figures import draw_figures

    with readable_runs(options.runs) as results:
        written = draw_figures(results, options.out, options.format, options.at_accuracy)
        tell(*written.notes, *written.files)


def slides(options: Namespace) -> None:
    """Slides of a talk, from one or more runs."""
    from attcem.slides import write_slides

    with readable_runs(options.runs) as results:
        written = write_slides(results, options.out, options.lang, options.at_accuracy)
        tell(*written.notes, f"open {written.file}   ({written.slides} slides)")


def compare(options: Namespace) -> None:
    """Defences at matched accuracy, with intervals and tests."""
    from attcem.compare import FORMATS, compare

    with readable_runs(options.runs) as results:
        compared = compare(results, **chosen(options, "metric", "at_accuracy", "against"))
        tell(*FORMATS[options.format](compared).split("\n"))


def check(options: Namespace) -> None:
    """Fail unless audits hold what is asked for: the gate of a build."""
    from attcem.check import Rules, check, junit, to_json
    from attcem.check.rules import MEASURES
    from attcem.files import write_atomically

    if missing := [path for path in options.runs if not Path(path).is_dir()]:
        raise UsageError(f"{missing[0]} is not a folder: give a run's, or an artifact's")
    try:
        rules = Rules(**chosen(options, *MEASURES, "suite"), allowed=tuple(options.allow_flags))
    except ValueError as error:
        raise UsageError(str(error)) from None
    verdicts = check(options.runs, rules)
    tell(*(line for verdict in verdicts for line in verdict.lines()))
    for path, content in ((options.junit, junit), (options.json, to_json)):
        if path:
            write_atomically(Path(path), content(verdicts).encode())
    failed = sum(not outcome.passed for verdict in verdicts for outcome in verdict.outcomes)
    if failed:
        raise ValueError(f"{failed} of {sum(len(verdict.outcomes) for verdict in verdicts)} rules fail")


def send(options: Namespace) -> None:
    """Send pictures to the cloud's half of an artifact, and only what was audited."""
    from dataclasses import replace

    from attcem.ship import Device, Unreachable

    given = {"picture": options.per_picture, "lookalikes": options.per_lookalike or options.per_picture}
    given |= chosen(options, "total", "nats")
    reached = chosen(options, "state", "name", "ca", "timeout", "retries", "queue")
    unsent = 0
    with Device(options.artifact, options.cloud, key=os.environ.get("ATTCEM_KEY"), **reached) as device:
        device.budget = replace(device.budget, **{name: value for name, value in given.items() if value is not None})
        for image in options.images:
            try:
                print_prediction(image, device.send(image, resize=options.resize))
            except Unreachable as error:
                unsent += 1
                tell(f"attcem: {image}: {error}", file=sys.stderr)
        if not unsent:
            for id, prediction in device.send_waiting().items():
                print_prediction(id, prediction)
    if unsent:
        again = f"attcem send {options.artifact} --cloud {options.cloud}"
        raise ValueError(f"{unsent} of {len(options.images)} messages wait: {again}")


def serve(options: Namespace) -> None:
    """Answer for the cloud's half of an artifact, over HTTP and gRPC, until told to stop."""
    from functools import partial

    from attcem.ship.keys import read_keys
    from attcem.ship.limits import Limits
    from attcem.ship.page_routes import page_routes
    from attcem.ship.service import CloudService
    from attcem.ship.serving import check_tls, serve

    if options.engine == "local" and (options.replicas or options.address):
        raise UsageError("--replicas and --address are for --engine ray")
    if options.engine == "ray" and options.grpc_port is not None:
        raise UsageError("--grpc-port is not for --engine ray: its replicas answer over HTTP")
    if options.engine == "ray" and options.page:
        raise UsageError("--page is not for --engine ray: show it with --engine local")
    keys = read_keys(options.keys)
    limits = Limits(options.max_body, options.max_batch, options.max_concurrent, options.rate)
    build = partial(
        CloudService, Path(options.artifact).resolve(), keys=keys, limits=limits, **chosen(options, "name", "threads")
    )
    where = chosen(options, "host", "port") | {"tls": check_tls(options.cert, options.key)}

    def started(scheme: str, port: int, grpc_port: int | None) -> None:
        host = f"[{options.host}]" if ":" in options.host else options.host
        tell(f"HTTP          {scheme}://{host}:{port}/v2/models/{options.name}")
        if grpc_port is not None:
            tell(f"gRPC          {host}:{grpc_port}")
        if options.page:
            tell(f"page          {scheme}://{host}:{port}/")
        tell(f"keys          {len(keys.digests) or 'none: whoever reaches this address may ask'}")
        sys.stdout.flush()

    if options.engine == "local":
        service = build()
        more = page_routes(options.artifact, service) if options.page else []
        serve(service, grpc_port=options.grpc_port, more=more, started=started, **where)
    else:
        from attcem.ship.replicas import serve_replicas

        serve_replicas(build, options.replicas or 1, address=options.address, started=started, **where)


def page(options: Namespace) -> None:
    """Prepare what `attcem serve ARTIFACT --page` shows: an undefended twin, and an attacker of each, trained here."""
    from attcem.pages import prepare_page

    folder = prepare_page(Path(options.artifact), Path(options.twin))
    tell(f"page          {folder}", f"show it       attcem serve {options.artifact} --page")


def get(options: Namespace) -> None:
    """Download a data set into the cache, or take it from a file."""
    from attcem.data import get_data

    path = get_data(**chosen(options, "name", "root", "source", "checksum"))
    root = f" --data.root {options.root}" if options.root else ""
    tell(f"{path} is ready: attcem run --data.name {options.name}{root}")


def chosen(options: Namespace, *names: str) -> dict[str, Any]:
    return {name: getattr(options, name) for name in names}


@contextmanager
def readable_runs(paths: Sequence[str]) -> Iterator[list[Result]]:
    """The runs that can be read; the others are named at once, and fail the command once the rest is done."""
    from attcem.runs import read_runs

    results, unread = read_runs(paths)
    tell(*(f"attcem: {line}" for line in unread), file=sys.stderr)
    yield results
    if unread:
        raise ValueError(f"{len(unread)} of {len(results) + len(unread)} runs left out, for they cannot be read")


def print_prediction(what: str, prediction: Prediction) -> None:
    tell(f"{what}   {prediction.label}   {prediction.probabilities[prediction.label]:.3f}")


def print_result(result: Result, folder: Path) -> None:
    tell(*(f"flag: {flag}" for flag in result.flags))
    tell(f"accuracy      {result.accuracy:.4f}")
    free = result.baselines["mean_image"].mse
    tell(f"worst MSE     {result.worst.mse:.5f}   {result.mse_ratio:.3f} of the mean image's {free:.5f}")
    tell(f"worst PSNR    {result.worst.psnr:.2f} dB   {result.psnr_gain:+.2f} dB over the mean image")
    tell(f"worst SSIM    {result.worst.ssim:.3f}")
    for client in result.clients:
        measured = ((client["accuracy"], 4), (client["worst"]["mse"], 5), (client["mean_image_mse"], 5))
        accuracy, worst, mean = ("-" if value is None else f"{value:.{digits}f}" for value, digits in measured)
        attacked = f"worst MSE {worst}   (mean image {mean})   {client['images']} images"
        tell(f"client {client['client']:<6} accuracy {accuracy}   {attacked}")
    tell(f"result        {folder / 'result.json'}")
    tell(f"page          attcem report {folder} --out report.html")
