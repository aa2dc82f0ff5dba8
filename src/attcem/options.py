"""What each command can be told on the command line; light, for help imports it."""

from __future__ import annotations

import argparse

from attcem.config import GRANTS

DEVICE = "where to compute: auto (a GPU if there is one), cpu, cuda, or cuda:1 (default: auto)"


def device_option(computing: argparse.ArgumentParser, default: str | None = None) -> None:
    """The option of every command that computes; without default, a file's `train.device` comes before auto."""
    computing.add_argument("--device", default=default, help=DEVICE)


def demo_options(showing: argparse.ArgumentParser) -> None:
    """Options of `attcem demo`."""
    showing.add_argument("--out", default="runs/demo", help="folder for the runs and report.html")
    device_option(showing, "auto")


def run_options(running: argparse.ArgumentParser) -> None:
    """Options of `attcem run`, whose help also lists every setting."""
    running.add_argument("--out")
    running.add_argument("--resume", action="store_true")
    running.add_argument("--jobs", type=positive)
    device_option(running)
    running.add_argument("-h", "--help", action="store_true")


def sweep_options(sweeping: argparse.ArgumentParser) -> None:
    """Options of `attcem sweep`."""
    sweeping.add_argument("file", help="a grid in YAML, or one of `attcem list sweeps`; --key value sets any setting")
    sweeping.add_argument("--seeds", type=int, nargs="+", help="a run for each of them (default: the file's)")
    sweeping.add_argument("--engine", choices=["local", "ray"], default="local", help="default: local")
    sweeping.add_argument("--address", help="a Ray cluster (default: this machine)")
    sweeping.add_argument("--jobs", type=positive, help="runs at a time (default: one per core)")
    sweeping.add_argument("--out", help="folder for the runs (default: runs/ and the file's name)")
    sweeping.add_argument("--resume", action="store_true", help="complete what is missing")
    device_option(sweeping)
    sweeping.add_argument("--dry-run", action="store_true", help="check everything and list the runs")


def tune_options(tuning: argparse.ArgumentParser) -> None:
    """Options of `attcem tune`."""
    tuning.add_argument("base", help="a file or preset to start from; --key value sets any setting")
    for option in ("--range", "--log-range"):
        tuning.add_argument(option, nargs=3, action="append", default=[], metavar=("KEY", "LOW", "HIGH"))
    tuning.add_argument("--choice", nargs="+", action="append", default=[], metavar="KEY VALUE")
    tuning.add_argument("--trials", type=positive, default=20, help="of all processes together (default: 20)")
    tuning.add_argument("--at-accuracy", type=float, help="print only what hides most at this validation accuracy")
    tuning.add_argument("--seed", type=int, default=0, help="the search's seed (default: 0)")
    device_option(tuning)
    tuning.add_argument("--out", help="folder for the study, shared by all processes (default: runs/tune-…)")


def audit_options(auditing: argparse.ArgumentParser) -> None:
    """Options of `attcem audit`."""
    auditing.add_argument("run", help="a run's folder")
    auditing.add_argument("--suite", help="see `attcem list suites`")
    auditing.add_argument("--threat", choices=list(GRANTS), help="what the attacker has (default: the run's)")
    auditing.add_argument("--images", type=int, help="test images to reconstruct")
    auditing.add_argument("--seed", type=int, help="the attacker's seed")
    device_option(auditing, "auto")
    auditing.add_argument(
        "--jobs", type=positive, help="attacks at a time, each on its share of the cores (default: as many as pay)"
    )


def explain_options(explaining: argparse.ArgumentParser) -> None:
    """Options of `attcem explain`."""
    explaining.add_argument("run", help="a run's folder")
    explaining.add_argument("--images", type=int, default=1000, help="validation images to look at (default: 1000)")
    device_option(explaining, "auto")
    explaining.add_argument("--tsne", action="store_true", help="also draw neighbourhoods (needs scikit-learn)")


def report_options(reporting: argparse.ArgumentParser) -> None:
    """Options of `attcem report`."""
    reporting.add_argument("runs", nargs="+", help=RUNS)
    reporting.add_argument("--out", default="report.html", help="the page to write")
    reporting.add_argument("--live", action="store_true", help="serve it on this machine while runs go on, instead")
    reporting.add_argument("--port", type=port, default=8765, help="of --live; 0 takes any free one (default: 8765)")


def figures_options(drawing: argparse.ArgumentParser) -> None:
    """Options of `attcem figures`."""
    drawing.add_argument("runs", nargs="+", help=RUNS)
    drawing.add_argument("--out", default="figures", help="the folder to write to (default: figures)")
    drawing.add_argument("--format", nargs="+", choices=["png", "pdf"], default=["png", "pdf"], help="default: both")
    drawing.add_argument("--at-accuracy", type=float, help="which strengths to show (default: the highest all reach)")


def compare_options(comparing: argparse.ArgumentParser) -> None:
    """Options of `attcem compare`."""
    comparing.add_argument("runs", nargs="+", help=RUNS)
    comparing.add_argument("--at-accuracy", type=float, help="accuracy to compare at (default: the highest all reach)")
    comparing.add_argument("--metric", choices=["mse", "ssim", "psnr"], default="mse", help="default: mse")
    comparing.add_argument("--against", metavar="NAME", help="the reference defence (default: noise, or the first)")
    comparing.add_argument(
        "--format", choices=["text", "markdown", "latex", "csv", "json"], default="text", help="default: text"
    )


def data_options(getting: argparse.ArgumentParser) -> None:
    """Options of `attcem data get`."""
    getting.add_argument("name", help="see `attcem list data`")
    getting.add_argument("--root", help="the cache (default: ATTCEM_DATA or ~/.cache/attcem)")
    getting.add_argument("--from", dest="source", metavar="FILE", help="an archive you already have")
    getting.add_argument("--checksum", metavar="sha256:HEX", help="what to expect instead of the official checksum")


RUNS = "run folders, or folders of them"


def positive(text: str) -> int:
    """A whole number from 1."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)


def port(text: str) -> int:
    """A port's number."""
    if not 0 <= int(text) < 2**16:
        raise ValueError
    return int(text)
