"""Commands around data sets. Heavy imports wait inside, for help."""

from __future__ import annotations

from argparse import Namespace

from attcem.commands.chosen import chosen
from attcem.terminal import tell


def get(options: Namespace) -> None:
    """Download a data set into the cache, or take it from a file."""
    from attcem.data import get_data

    path = get_data(**chosen(options, "name", "root", "source", "checksum"))
    root = f" --data.root {options.root}" if options.root else ""
    tell(f"{path} is ready: attcem run --data.name {options.name}{root}")
