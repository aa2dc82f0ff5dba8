"""What `attcem sweep` and `attcem tune` can be told on the command line; light, for help imports it."""

from __future__ import annotations

import argparse


def sweep_options(sweeping: argparse.ArgumentParser) -> None:
    """Options of `attcem sweep`."""
    sweeping.add_argument("file", help="a grid in YAML, or one of `attcem list sweeps`; --key value sets any setting")
    sweeping.add_argument("--seeds", type=int, nargs="+", help="a run for each of them (default: the file's)")
    sweeping.add_argument("--engine", choices=["local", "ray"], default="local", help="default: local")
    sweeping.add_argument("--address", help="a Ray cluster (default: this machine)")
    sweeping.add_argument("--jobs", type=positive, help="runs at a time (default: one per core)")
    sweeping.add_argument("--out", help="folder for the runs (default: runs/ and the file's name)")
    sweeping.add_argument("--resume", action="store_true", help="complete what is missing")
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
    tuning.add_argument("--out", help="folder for the study, shared by all processes (default: runs/tune-…)")


def positive(text: str) -> int:
    """A whole number from 1."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1")
    return int(text)
