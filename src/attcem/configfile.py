"""Experiments from YAML and the command line: every key and value is checked, a typo names its nearest neighbour."""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import typing
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import NoneType
from typing import Any, NoReturn

from jsonargparse import ArgumentParser, set_loader

from attcem.config import Experiment
from attcem.links import Link, as_chain, number, read_links
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


@contextmanager
def usage_errors() -> Iterator[None]:
    """What is wrong with settings is wrong usage, told on one line."""
    try:
        yield
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(" ".join(str(error).split())) from None


def parse_experiment(arguments: Sequence[str]) -> Experiment:
    """The experiment that `[FILE.yaml] [--key value …]` describes, with every name in it checked."""
    file, arguments = without_file(arguments)
    arguments, links = without_links(arguments)
    written = {} if file is None else read_yaml(file)
    if written.keys() & {"runs", "grid"}:
        raise UsageError(f"{file} describes many runs: attcem sweep {file}")
    check_keys(Experiment, written, source=str(file))
    parser = experiment_parser()
    parsed = parser.parse_args([*as_arguments(written), *arguments])
    parsed.pop("config", None)
    with usage_errors():
        experiment: Experiment = Experiment(**vars(parser.instantiate(parsed)))
        chain = overridden(as_chain(experiment.defence), links)
        experiment = dataclasses.replace(experiment, defence=typed_chain(chain))
        check_names(experiment)
        return experiment


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The mapping in a YAML file."""
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


def overridden(chain: list[dict[str, Any]], links: Mapping[str, str]) -> list[dict[str, Any]]:
    """The chain with single options replaced, the others as they were; a link that it does not have is added."""
    chain = chain.copy()
    for key, text in links.items():
        name, _, option = key.partition(".")
        try:
            value = parse_yaml(text)
        except ValueError:
            raise UsageError(f"defence.{key} cannot be {text!r}: give a number, a word or a {{mapping: 1}}") from None
        place = place_of(name, chain)
        ((kind, options),) = chain[place].items()
        chain[place] = {kind: {**options, option: value} if option and isinstance(options, Mapping) else value}
    return chain


def place_of(name: str, chain: list[dict[str, Any]]) -> int:
    """Where in the chain the link of this name stands; one that would get this name is added at the end."""
    from attcem.defences import DEFENCES

    names = number(kind for link in chain for kind in link)
    if name in names:
        return names.index(name)
    chain.append({re.sub(r"-\d+$", "", name): {}})
    if number(kind for link in chain for kind in link)[-1] != name:
        raise UsageError(f"the chain has no link {name!r}: {nearest(name, [*names, *DEFENCES])}")
    return len(names)


def typed_chain(chain: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Check every link's options against its signature; `lam` alone means the one link that has a lam."""
    from attcem.defences import DEFENCES

    alone = {kind: value for link in chain for kind, value in link.items() if kind not in DEFENCES and ":" not in kind}
    links = read_links([link for link in chain if not alone.keys() & link.keys()])
    chosen = {link.name: dict(link.options) for link in links}
    for name, value in alone.items():
        owners = [link.name for link in links if name in options_of(link.kind)]
        if len(owners) != 1:
            known = {*DEFENCES, *(option for link in links for option in options_of(link.kind))}
            raise UsageError(
                f"defence.{name} belongs to more than one of {', '.join(owners)}: write defence.{owners[0]}.{name}"
                if owners
                else f"unknown defence or option {name!r}: {nearest(name, known)}"
            )
        chosen[owners[0]][name] = value
    return [{link.kind: typed_options(link._replace(options=chosen[link.name]))} for link in links]


def options_of(kind: str) -> dict[str, Any]:
    """Options of a kind and their types; those of a defence of your own are not looked up."""
    from attcem.defences import DEFENCES, option_types

    return option_types(kind) if kind in DEFENCES else {}


def typed_options(link: Link) -> Mapping[str, Any]:
    """One link's options with their declared types, where these are known."""
    from attcem.defences import DEFENCES

    if link.kind not in DEFENCES:
        return link.options
    for option in link.options:
        if option not in options_of(link.kind):
            raise UsageError(
                f"defence {link.name!r} has no option {option!r}: {nearest(option, options_of(link.kind))}"
            )
    parser = options_parser(typing.cast(Hashable, DEFENCES[link.kind]))
    plain = {key: parse_yaml(value) if isinstance(value, str) else value for key, value in link.options.items()}
    try:
        typed = vars(parser.parse_object(plain))
    except UsageError as error:
        raise UsageError(f"defence {link.name}: {error}") from None
    return {key: value for key, value in typed.items() if key in options_of(link.kind)}


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
    r'key "defence": Does not validate.* Given value: (.*)': lambda found, _: (
        f"defence cannot be {found[1]}: give a list of links, as in [{{noise: {{sigma: 0.1}}}}]"
    ),
    r'key "([\w.]+)": .*Literal\[(.+?)\]\. Got value: (\S+)': _choose,
    r"argument (\S+): invalid choice: '(.*?)' \(choose from (.+)\)": lambda found, _: (
        f"unknown {found[1]} {found[2]!r}: {nearest(found[2], re.split(r', ', found[3].replace(chr(39), '')))}"
    ),
    r"key \"([\w.]+)\": Expected an? <class '(\w+)'>\. Got value: (.*)": lambda found, _: (
        f"{found[1]} must be of type {found[2]}, not {found[3]!r}"
    ),
}
"""What the parsers say → what we say."""
