"""Experiments from YAML and the command line: every key and value is checked, a typo names its nearest neighbour."""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import typing
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn

from jsonargparse import ArgumentParser, set_loader

from attcem.config import Experiment
from attcem.naming import look_up, nearest
from attcem.reading import settings
from attcem.reading.settings import parse_yaml

LINK = "--defence."
MODE = "attcem"
set_loader(MODE, parse_yaml, exceptions=(ValueError,))


class UsageError(ValueError):
    """The command line or a configuration file is wrong; the program exits with 2."""


class Parser(ArgumentParser):
    """A parser that raises, and says what was probably meant."""

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Turn a parse error into one line with the nearest valid name."""
        raise UsageError(explain(str(message), list(self._option_string_actions)))


@cache
def experiment_parser(prog: str = "attcem run") -> Parser:
    """A parser whose options are the fields of Experiment, on top of a YAML file: --train.epochs 10."""
    parser = Parser(prog=prog, usage=argparse.SUPPRESS, parser_mode=MODE)
    parser.add_argument("--config", metavar="FILE", help="YAML file with any of the settings below")
    parser.add_class_arguments(Experiment, as_group=False)
    return parser


def parse_experiment(arguments: Sequence[str]) -> Experiment:
    """The experiment that `[FILE.yaml] [--key value …]` describes, with every name in it checked."""
    from attcem.defences import build_defence

    file, arguments = without_file(arguments)
    arguments, links = without_links(arguments)
    written = {} if file is None else read_yaml(file)
    check_keys(Experiment, written, source=str(file))
    parser = experiment_parser()
    parsed = parser.parse_args([*as_arguments(written), *arguments])
    parsed.pop("config", None)
    try:
        experiment: Experiment = Experiment(**vars(parser.instantiate(parsed)))
        experiment = dataclasses.replace(experiment, defence=typed_chain(overridden(experiment.defence, links)))
        check_names(experiment)
        build_defence(experiment.defence)
        return experiment
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(" ".join(str(error).split())) from None


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping in a YAML file."""
    try:
        return settings.read_yaml(path)
    except ValueError as error:
        raise UsageError(str(error)) from None


def check_keys(config: type, settings: Mapping[str, Any], source: str, path: str = "") -> None:
    """Raise on the first key that a configuration class does not have, and look inside nested ones."""
    types = typing.get_type_hints(config)
    for key, value in settings.items():
        if key not in types:
            raise UsageError(f"{source}: unknown key '{path}{key}': {nearest(str(key), types)}")
        nested = [t for t in (types[key], *typing.get_args(types[key])) if dataclasses.is_dataclass(t)]
        if nested and isinstance(value, Mapping):
            check_keys(typing.cast(type, nested[0]), value, source, f"{path}{key}.")


def check_names(experiment: Experiment) -> None:
    """Raise on a data set, backbone or suite that does not exist."""
    from attcem.attacks import SUITES
    from attcem.data import DATASETS
    from attcem.models import BACKBONES

    look_up("data set", experiment.data.name.split(":")[0], DATASETS)
    look_up("backbone", experiment.model.backbone, BACKBONES)
    look_up("suite", experiment.audit.suite, SUITES)


def as_arguments(settings: Mapping[str, Any]) -> list[str]:
    """Settings as the command line takes them: the same door, so the same checks."""
    return [f"--{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in settings.items()]


def without_file(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """The file that stands first or after --config, and the other arguments."""
    arguments = list(arguments)
    if arguments and not arguments[0].startswith("-"):
        return arguments[0], arguments[1:]
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("--config", nargs="?", const="")
    found, rest = finder.parse_known_args(arguments)
    if found.config == "":
        raise UsageError("--config needs a file, as in --config experiment.yaml")
    return found.config, rest


def without_links(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The arguments without those that set one defence's option, and these: "noise.sigma" → its value.

    The parser would take each of them for a whole new defence, and forget the options that were given before.
    """
    rest, links, waiting = [], {}, list(arguments)
    while waiting:
        argument = waiting.pop(0)
        if not argument.startswith(LINK):
            rest.append(argument)
            continue
        key, given, value = argument.removeprefix(LINK).partition("=")
        if not given and (not waiting or waiting[0].startswith("--")):
            raise UsageError(f"{argument} needs a value, as in {argument} 0.1")
        links[key] = value if given else waiting.pop(0)
    return rest, links


def overridden(chain: Mapping[str, Any], links: Mapping[str, str]) -> dict[str, Any]:
    """The chain with single options replaced, the others as they were."""
    chain = {name: dict(options) if isinstance(options, Mapping) else options for name, options in chain.items()}
    for key, text in links.items():
        name, _, option = key.partition(".")
        try:
            value = parse_yaml(text)
        except ValueError:
            raise UsageError(f"defence.{key} cannot be {text!r}: give a number, a word or a {{mapping: 1}}") from None
        if option:
            chain[name] = dict(chain.get(name) or {}) | {option: value}
        else:
            chain[name] = value
    return chain


def typed_chain(chain: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Check every link's options against its signature; `lam` alone means the one link that has a lam."""
    from attcem.defences import DEFENCES, option_types

    for name, options in chain.items():
        if name in DEFENCES and not isinstance(options, Mapping | None):
            raise UsageError(f"defence.{name} cannot be {options!r}: give its options, as in {{sigma: 0.1}}")
    links = {name: dict(options or {}) for name, options in chain.items() if name in DEFENCES}
    for name, value in chain.items():
        if name in DEFENCES:
            continue
        owners = [link for link in links if name in option_types(link)]
        if len(owners) != 1:
            known = [*DEFENCES, *(option for link in links for option in option_types(link))]
            raise UsageError(
                f"defence.{name} belongs to more than one of {', '.join(owners)}: write defence.{owners[0]}.{name}"
                if owners
                else f"unknown defence or option {name!r}: {nearest(name, known)}"
            )
        links[owners[0]][name] = value
    return {name: typed_options(name, options) for name, options in links.items()}


def typed_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """One defence's options with their declared types."""
    from attcem.defences import DEFENCES, option_types

    for option in options:
        if option not in option_types(name):
            raise UsageError(f"defence {name!r} has no option {option!r}: {nearest(option, option_types(name))}")
    parser = options_parser(typing.cast(Hashable, DEFENCES[name]))
    plain = {key: parse_yaml(value) if isinstance(value, str) else value for key, value in options.items()}
    try:
        return {key: value for key, value in vars(parser.parse_object(plain)).items() if key in option_types(name)}
    except UsageError as error:
        raise UsageError(f"defence {name}: {error}") from None


@cache
def options_parser(defence: Hashable) -> Parser:
    """A parser for the options of a defence's class; a sweep asks for it again and again."""
    parser = Parser(parser_mode=MODE)
    parser.add_class_arguments(typing.cast(type, defence), as_group=False)
    return parser


def explain(message: str, options: Sequence[str]) -> str:
    """One line from a parser's message, with the nearest valid name where one was mistyped.

    >>> explain("unrecognized arguments: --sede 1", ["--seed", "--train.epochs"])
    "unknown option --sede: did you mean '--seed'?"
    """
    message = " ".join(message.split())
    for pattern, sentence in MESSAGES.items():
        if found := re.search(pattern, message):
            return sentence(found, options)
    return message


def _suggest(kind: str, found: re.Match[str], options: Sequence[str]) -> str:
    name = found[1]
    known = options if name.startswith("-") else [option.split(".")[-1].lstrip("-") for option in options]
    return f"unknown {kind} {name}: {nearest(name, known)}"


def _choose(found: re.Match[str], options: Sequence[str]) -> str:
    allowed = re.findall(r"'([^']*)'", found[2])
    return f"{found[1]} cannot be {found[3]!r}: {nearest(found[3], allowed)}"


MESSAGES: dict[str, Callable[[re.Match[str], Sequence[str]], str]] = {
    r"(unknown option '?\w+'?: [^?]*\?)": lambda found, _: found[1],
    r"unrecognized arguments: (--?[^\s=]+)": partial(_suggest, "option"),
    r"Option '(\w+)' is not accepted": partial(_suggest, "option"),
    r"does not accept option '(\w+)'": partial(_suggest, "option"),
    r'key "([\w.]+)": .*Literal\[(.+?)\]\. Got value: (\S+)': _choose,
    r"argument (\S+): invalid choice: '(.*?)' \(choose from (.+)\)": lambda found, _: (
        f"unknown {found[1]} {found[2]!r}: {nearest(found[2], re.split(r', ', found[3].replace(chr(39), '')))}"
    ),
    r"key \"([\w.]+)\": Expected an? <class '(\w+)'>\. Got value: (.*)": lambda found, _: (
        f"{found[1]} must be of type {found[2]}, not {found[3]!r}"
    ),
}
"""What the parsers say → what we say."""
