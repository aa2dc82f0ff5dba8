"""Errors of parsers in our words: what is wrong, and the nearest name that is right."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from jsonargparse import ArgumentParser, set_loader

from attcem.naming import nearest
from attcem.reading.settings import parse_yaml

MODE = "attcem"
set_loader(MODE, parse_yaml, exceptions=(ValueError,))


class UsageError(ValueError):
    """The command line or a configuration file is wrong; the program exits with 2."""


@contextmanager
def usage_errors() -> Iterator[None]:
    """What is wrong with settings is wrong usage, told on one line."""
    try:
        yield
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(" ".join(str(error).split())) from None


class Parser(ArgumentParser):
    """A parser that raises, and says what was probably meant."""

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        raise UsageError(explain(str(message), list(self._option_string_actions)))


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


def _suggest(found: re.Match[str], options: Sequence[str]) -> str:
    name = found[1]
    known = options if name.startswith("-") else [option.split(".")[-1].lstrip("-") for option in options]
    return f"unknown option {name}: {nearest(name, known)}"


MESSAGES: dict[str, Callable[[re.Match[str], Sequence[str]], str]] = {
    r"(unknown option '?\w+'?: [^?]*\?)": lambda found, _: found[1],
    r"unrecognized arguments: (--?[^\s=]+)": _suggest,
    r"(?:Option|does not accept option) '(\w+)'": _suggest,
    r'key "defence": Does not validate.* Given value: (.*)': lambda found, _: (
        f"defence cannot be {found[1]}: give a list of links, as in [{{noise: {{sigma: 0.1}}}}]"
    ),
    r'key "([\w.]+)": .*Literal\[(.+?)\]\. Got value: (\S+)': lambda found, _: (
        f"{found[1]} cannot be {found[3]!r}: " + nearest(found[3], re.findall(r"'([^']*)'", found[2]))
    ),
    r"argument (\S+): invalid choice: '(.*?)' \(choose from (.+)\)": lambda found, _: (
        f"unknown {found[1].lower()} {found[2]!r}: " + nearest(found[2], found[3].replace("'", "").split(", "))
    ),
    r"key \"([\w.]+)\": Expected an? <class '(\w+)'>\. Got value: (.*)": lambda found, _: (
        f"{found[1]} must be of type {found[2]}, not {found[3]!r}"
    ),
}
"""What the parsers say → what we say."""
