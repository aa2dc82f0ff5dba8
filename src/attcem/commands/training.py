"""Commands that train, attack, and list what can be named. Heavy imports wait inside, for help."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from attcem.commands.chosen import chosen
from attcem.configfile import UsageError, parse_experiment
from attcem.listing import LISTS, find_file, preset_paths, sweep_paths, yaml_paths
from attcem.terminal import interruptible, tell

if TYPE_CHECKING:
    from attcem.config import Experiment
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
    runs = read_sweep(path, preset_paths(), overrides=options.settings, **chosen(options, "seeds", "device", "quick"))
    if options.dry_run:
        tell(*(f"{run.name}   {run.label}" for run in runs))
        return
    out = Path(options.out or Path("runs") / (path.stem + "-quick" * options.quick)).absolute()
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
