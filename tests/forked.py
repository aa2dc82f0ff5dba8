"""Programs in Python without the seconds that importing torch takes: a fork of this process, which has done it.

Everything else is a process's: its number, its pipes, the signals that it dies of. It also inherits what a test has
changed in this one, such as how long an attack takes.
"""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any, NoReturn

import pytest

Popen = subprocess.Popen


def start(args: Sequence[str], **options: Any) -> subprocess.Popen:
    """`subprocess.Popen`, except for `python -m MODULE …`, whose output may be unbuffered."""
    python, *rest = (each for each in args if each != "-u")
    if python != sys.executable or rest[:1] != ["-m"]:
        return Popen(args, **options)
    return fork(rest[1], rest[2:], **options)


def fork(
    module: str,
    arguments: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    preexec_fn: Callable[[], None] = lambda: None,
    **options: Any,
) -> subprocess.Popen:
    """A process as `subprocess.Popen` prepares it, which then never comes to start what it was asked for."""
    import_module("torch._dynamo")  # a second, which every fork that trains would take: optimisers want it
    environment = dict(os.environ if env is None else env)

    def become() -> None:
        preexec_fn()
        keep_open({0, 1, 2, *pass_fds})
        os.environ.clear()
        os.environ.update(environment)
        run(module, arguments)

    return Popen([sys.executable], pass_fds=pass_fds, preexec_fn=become, **options)


def keep_open(files: set[int]) -> None:
    """Close all other files; among them is the one on which who started this process waits for its start."""
    for one, other in pairwise([*sorted(files), os.sysconf("SC_OPEN_MAX")]):
        os.closerange(one + 1, other)


def run(module: str, arguments: Sequence[str]) -> NoReturn:
    """Be the program, to its end."""
    standard = partial(os.fdopen, closefd=False)
    sys.stdin, sys.stdout, sys.stderr = standard(0), standard(1, "w"), standard(2, "w", 1)
    sys.argv = [module, *arguments]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # as Python does when it starts
        signal.signal(ignored, signal.SIG_IGN)
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    os._exit(code)


@contextmanager
def forking() -> Iterator[None]:
    """Whatever starts a program in Python forks instead, and so does what it starts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", start)
        yield
