"""Options of a command line as arguments of a function."""

from argparse import Namespace
from typing import Any


def chosen(options: Namespace, *names: str) -> dict[str, Any]:
    return {name: getattr(options, name) for name in names}
