"""The command line: parses, calls, prints. Help needs no torch, so heavy imports wait inside the commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from attcem import __version__
from attcem.configfile import UsageError, experiment_parser, explain, parse_experiment
from attcem.listing import LISTS, find_file, preset_paths, print_list, sweep_paths, yaml_paths
from attcem.options import (
    DEVICE,
    audit_options,
    compare_options,
    data_options,
    demo_options,
    explain_options,
    figures_options,
    report_options,
    run_options,
    sweep_options,
    tune_options,
)
from attcem.terminal import allow_closed_pipe, tell

if TYPE_CHECKING:
    from attcem.types import Result


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors name what was probably meant."""

    def error(self, message: str) -> NoReturn:
        """Raise, so that `main` prints every error in one way."""
        raise UsageError(explain(message, list(self._option_string_actions)))


def demo(options: argparse.Namespace, rest: list[str]) -> None:
    """The whole story on embedded data, in minutes."""
    from attcem.demo import demo

    tell("", f"open {demo(options.out, device=options.device)}")


def show_list(options: argparse.Namespace, rest: list[str]) -> None:
    """What can be named in a configuration."""
    print_list(options.what)


def run(options: argparse.Namespace, rest: list[str]) -> None:
    """Train a split network, attack it, and write the result."""
    if options.help:
        print(RUN_HELP)
        experiment_parser().print_help()
        return
    out = options.out
    if rest and not rest[0].startswith("-"):
        if Path(rest[0]).is_dir():
            out = out or rest[0]
            rest[0] = str(Path(rest[0]) / "config.yaml")
        else:
            rest[0] = str(find_file(rest[0], yaml_paths()))
    experiment = parse_experiment(rest).on(options.device)
    from attcem.experiment import run, run_folder

    folder = Path(out) if out else Path("runs") / run_folder(experiment)
    try:
        result, folder = run(experiment, folder, resume=options.resume, jobs=options.jobs)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"every finished epoch is kept: attcem run {folder} --resume") from None
    print_result(result, folder)


def sweep(options: argparse.Namespace, rest: list[str]) -> None:
    """Do a grid of experiments, several at a time, and complete what is missing."""
    from attcem.sweep.command import do_sweep
    from attcem.sweep.grid import read_sweep

    if options.address and options.engine != "ray":
        raise UsageError("--address is for --engine ray")
    path = find_file(options.file, sweep_paths())
    runs = read_sweep(path, preset_paths(), seeds=options.seeds, overrides=rest, device=options.device)
    if options.dry_run:
        tell(*(f"{run.name}   {run.label}" for run in runs))
        return
    how = {name: getattr(options, name) for name in ("engine", "jobs", "address", "resume")}
    do_sweep(runs, Path(options.out or Path("runs") / path.stem).absolute(), **how)


def tune(options: argparse.Namespace, rest: list[str]) -> None:
    """Search for settings that keep accuracy and hide most, judged on validation images only."""
    from attcem.tune import best_trials, figures, read_search, tune

    base = [str(find_file(options.base, preset_paths())), *rest]
    search = read_search(base, options.range, options.log_range, options.choice, options.device)
    out = Path(options.out or Path("runs") / f"tune-{Path(options.base).stem}")
    try:
        study = tune(search, out, options.trials, seed=options.seed)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("finished trials and epochs are kept: the same command goes on") from None
    for trial in best_trials(study, options.at_accuracy):
        tell(f"{figures(*trial.values)}   {search.command(trial.params)}")


def audit(options: argparse.Namespace, rest: list[str]) -> None:
    """Attack a trained run and write its result."""
    from attcem.config import with_options
    from attcem.experiment import audit_run, read_experiment, restore_run
    from attcem.workplace import working_in

    folder = Path(options.run)
    experiment = read_experiment(folder)
    names = ("suite", "threat", "images", "seed")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    experiment = with_options(experiment, {"audit": with_options(experiment.audit, given)})
    try:
        with working_in(folder):
            trained = restore_run(folder, experiment, device=options.device)
            result = audit_run(folder, experiment, trained, jobs=options.jobs)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("finished attacks are kept: the same command goes on after them") from None
    print_result(result, folder)


def explain_run(options: argparse.Namespace, rest: list[str]) -> None:
    """Draw what a run's defence looks at: attention, slots, gates, latent."""
    from attcem.explain import explain

    folder = Path(options.run)
    for found in explain(folder, images=options.images, tsne=options.tsne, device=options.device):
        tell(f"{folder / 'explain' / found.file}   {found.title}")
    if not (folder / "result.json").exists():
        tell(f"a page needs an audit first: attcem audit {folder}")
    tell(f"page          attcem report {folder} --out report.html")


def report(options: argparse.Namespace, rest: list[str]) -> None:
    """One HTML page from one or more runs."""
    from attcem.compare import comparison_tables
    from attcem.report import render, write_report
    from attcem.report.live import live

    if options.live:
        live(options.runs, options.port, lambda results: render(results, comparison_tables(results)))
        return
    with readable(options.runs) as results:
        tell(f"open {write_report(results, options.out, comparison_tables(results))}")


def figures(options: argparse.Namespace, rest: list[str]) -> None:
    """Figures for a paper, from one or more runs."""
    from attcem.figures import draw_figures

    with readable(options.runs) as results:
        written = draw_figures(results, options.out, options.format, options.at_accuracy)
        tell(*written.notes, *written.files)


def compare(options: argparse.Namespace, rest: list[str]) -> None:
    """Defences at matched accuracy, with intervals and tests."""
    from attcem.compare import FORMATS, compare

    asked = {name: getattr(options, name) for name in ("metric", "at_accuracy", "against")}
    with readable(options.runs) as results:
        tell(*FORMATS[options.format](compare(results, **asked)).split("\n"))


@contextmanager
def readable(paths: Sequence[str]) -> Iterator[list[Result]]:
    """The runs that can be read; the others are named at once, and fail the command once the rest is done."""
    from attcem.runs import read_runs

    results, unread = read_runs(paths)
    tell(*(f"attcem: {line}" for line in unread), file=sys.stderr)
    yield results
    if unread:
        raise ValueError(f"{len(unread)} of {len(results) + len(unread)} runs left out, for they cannot be read")


def data_get(options: argparse.Namespace, rest: list[str]) -> None:
    """Download a data set into the cache, or take it from a file."""
    from attcem.data import get_data

    path = get_data(options.name, root=options.root, source=options.source, checksum=options.checksum)
    tell(
        f"{path} is ready: attcem run --data.name {options.name}"
        + (f" --data.root {options.root}" if options.root else "")
    )


def print_result(result: Result, folder: Path) -> None:
    """The numbers that matter, next to the free attack's."""
    floor = result.baselines["mean_image"].mse
    tell(*(f"flag: {flag}" for flag in result.flags))
    tell(f"accuracy      {result.accuracy:.4f}")
    tell(f"worst MSE     {result.worst.mse:.5f}   (mean image {floor:.5f})")
    tell(f"worst PSNR    {result.worst.psnr:.2f} dB   SSIM {result.worst.ssim:.3f}")
    tell(*client_lines(result))
    tell(f"result        {folder / 'result.json'}")
    tell(f"page          attcem report {folder} --out report.html")


def client_lines(result: Result) -> list[str]:
    """A line for every client that was attacked; a dash where its classes were not."""

    def shown(value: float | None, digits: int) -> str:
        return "-" if value is None else f"{value:.{digits}f}"

    return [
        f"client {client['client']:<6} accuracy {shown(client['accuracy'], 4)}   "
        f"worst MSE {shown(client['worst']['mse'], 5)}   (mean image {shown(client['mean_image_mse'], 5)})   "
        f"{client['images']} images"
        for client in result.clients
    ]


RUN_HELP = f"""usage: attcem run [FILE.yaml | PRESET | RUN-FOLDER] [--out DIR] [--resume] [--jobs N] [--device D]
                  [--key value ...]

Train a split network, attack it, and write the result to a folder under runs/.
  --out DIR   where to put the run (default: runs/, named by its settings)
  --resume    continue an interrupted run; a finished one is only read
  --jobs N    attacks at a time, each on its share of the cores (default: as many as pay)
  --device D  {DEVICE}

Any setting below overrides the file's:
"""


SETTABLE = (run, sweep, tune)
"""Commands that take any setting as --key value."""


def build_parser() -> Parser:
    """All commands and their options."""
    parser = Parser(prog="attcem", description=__import__("attcem").__doc__)
    parser.add_argument("--version", action="version", version=f"attcem {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)

    def command(
        name: str, call: Callable, where: argparse._SubParsersAction = commands, add_help: bool = True
    ) -> Parser:
        made = where.add_parser(
            name, help=call.__doc__, description=call.__doc__, allow_abbrev=False, add_help=add_help
        )
        made.set_defaults(call=call, parser=made)
        return made

    demo_options(command("demo", demo))
    command("list", show_list).add_argument("what", nargs="?", choices=list(LISTS), help="everything if not given")
    run_options(command("run", run, add_help=False))
    sweep_options(command("sweep", sweep))
    tune_options(command("tune", tune))
    audit_options(command("audit", audit))
    explain_options(command("explain", explain_run))
    report_options(command("report", report))
    figures_options(command("figures", figures))
    compare_options(command("compare", compare))
    about_data = commands.add_parser("data", help="Data sets.")
    getters = about_data.add_subparsers(metavar="get", required=True, parser_class=Parser)
    data_options(command("get", data_get, getters))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 done, 1 failed, 2 wrong usage."""
    try:
        with allow_closed_pipe():
            parser = build_parser()
            options, rest = parser.parse_known_args(arguments)
            if not getattr(options, "call", None):
                parser.print_help()
                return 2
            if rest and options.call not in SETTABLE:
                options.parser.error(f"unrecognized arguments: {rest[0]}")
            options.call(options, rest)
    except UsageError as error:
        tell(f"attcem: {error}", file=sys.stderr)
        return 2
    except (ValueError, OSError) as error:
        tell(f"attcem: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interrupt:
        tell("", f"attcem: interrupted{': ' if interrupt.args else ''}{' '.join(interrupt.args)}", file=sys.stderr)
        return 1
    return 0
