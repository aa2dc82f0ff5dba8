"""Shapes in signatures are checked while testing: a function's first calls in each test, as loops repeat the rest."""

from __future__ import annotations

import functools
import inspect
import operator
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from beartype import BeartypeConf, beartype

CHECKS = 20
"""In one test, of what a function is given, and as many of what it gives."""

done: Counter[Callable[..., Any]] = Counter()
trusted: set[Any] = set()
an_int_is_a_float = beartype(conf=BeartypeConf(is_pep484_tower=True))


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """The checker that the import hook applies to what a function is given, and to what it gives."""
    checked = an_int_is_a_float(function)

    @functools.wraps(checked)
    def counted(*args: Any, **options: Any) -> Any:
        done[function] += 1
        if done[function] == CHECKS:
            trust(function)
        return checked(*args, **options)

    return counted


def trust(function: Callable[..., Any]) -> None:
    """Let the hook pass a function by, if it has a name to be found by."""
    try:
        found = inspect.unwrap(operator.attrgetter(function.__qualname__)(sys.modules[function.__module__]))
        found.__no_type_check__ = True
    except AttributeError:
        return
    trusted.add(found)


def begin() -> None:
    """Another test: everything is checked again."""
    for function in trusted:
        del function.__no_type_check__
    trusted.clear()
    done.clear()
