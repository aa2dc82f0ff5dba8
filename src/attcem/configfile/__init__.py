"""Experiments from YAML and the command line: every key and value is checked, a typo names its nearest neighbour."""

import argparse
import dataclasses
import json
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any

from attcem.config import Experiment
from attcem.configfile.messages import MODE, Parser, UsageError, usage_errors
from attcem.links import as_chain
from attcem.naming import look_up, nearest
from attcem.reading import settings

__all__ = ["UsageError", "as_arguments", "experiment_parser", "parse_experiment", "read_yaml", "usage_errors"]


@cache
def experiment_parser() -> Parser:
    """A parser whose options are the fields of Experiment, on top of a YAML file: --train.epochs 10."""
    parser = Parser(prog="attcem run", usage=argparse.SUPPRESS, parser_mode=MODE, allow_abbrev=False)
    parser.add_argument("--config", metavar="FILE", help="YAML file with any of the settings below")
    parser.add_class_arguments(Experiment, as_group=False)
    return parser


def parse_experiment(arguments: Sequence[str]) -> Experiment:
    """The experiment that `[FILE.yaml] [--key value …]` describes, with every name in it checked."""
    from attcem.attacks import SUITES
    from attcem.configfile.chain import override_crossing, override_options, take_options, typed_chain
    from attcem.data import find_entry
    from attcem.models import BACKBONES

    file, arguments = take_file(arguments)
    arguments, links = take_options(arguments, "--defence.")
    arguments, crossing = take_options(arguments, "--model.crossing.")
    written = {} if file is None else read_yaml(file)
    if written.keys() & {"runs", "grid"}:
        raise UsageError(f"{file} describes many runs: attcem sweep {file}")
    check_keys(Experiment, written, source=str(file))
    parser = experiment_parser()
    parsed = parser.parse_args([*as_arguments(written), *arguments])
    parsed.pop("config", None)
    with usage_errors():
        experiment = Experiment(**vars(parser.instantiate(parsed)))
        chain = override_options(as_chain(experiment.defence), links)
        if crossing:
            crosses = override_crossing(experiment.model.crossing, crossing)
            experiment = dataclasses.replace(experiment, model=dataclasses.replace(experiment.model, crossing=crosses))
        experiment = dataclasses.replace(experiment, defence=typed_chain(chain))
        find_entry(experiment.data.name)
        look_up("backbone", experiment.model.backbone, BACKBONES)
        look_up("suite", experiment.audit.suite, SUITES)
        return experiment


def read_yaml(path: str | Path) -> dict[str, Any]:
    with usage_errors():
        return settings.read_yaml(path)


def check_keys(config: type, settings: Mapping[str, Any], source: str, path: str = "") -> None:
    """Raise on the first key that a configuration class does not have, or that is empty; look inside nested ones."""
    types = typing.get_type_hints(config)
    for key, value in settings.items():
        if key not in types:
            raise UsageError(f"{source}: unknown key '{path}{key}': {nearest(str(key), types)}")
        if value is None and NoneType not in typing.get_args(types[key]):
            raise UsageError(f"{source}: '{path}{key}' cannot be null: give a value, or leave it out for its default")
        nested = [t for t in (types[key], *typing.get_args(types[key])) if dataclasses.is_dataclass(t)]
        if nested and isinstance(value, Mapping):
            check_keys(typing.cast(type, nested[0]), value, source, f"{path}{key}.")


def as_arguments(settings: Mapping[str, Any]) -> list[str]:
    """Settings as the command line takes them: the same door, so the same checks."""
    return [f"--{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in settings.items()]


def take_file(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    arguments = list(arguments)
    if arguments and not arguments[0].startswith("-"):
        return arguments[0], arguments[1:]
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("--config", nargs="?", const="")
    found, rest = finder.parse_known_args(arguments)
    if found.config == "":
        raise UsageError("--config needs a file, as in --config experiment.yaml")
    return found.config, rest
