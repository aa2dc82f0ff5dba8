"""Everything as a page says it, on a slice of the embedded pictures and with the shortest suite.

python -m tests.docs.quickly run fashion_none       # `attcem run fashion_none`, in seconds
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

import attcem
import attcem.data
import attcem.parts
from attcem.attacks import SUITES
from attcem.attacks.suite import Suite
from attcem.data import Data

SIZES = {"private": 640, "validation": 50, "public": 128, "test": 100}
SMOKE = SUITES["smoke"]
BRIEF = replace(SMOKE, attacks={"decoder_small": replace(SMOKE.attacks["decoder_small"], cycle=8)}, seen=256)


def shorten(patch: pytest.MonkeyPatch, small: Data, suite: Suite = SMOKE) -> None:
    """Replace the embedded data and every suite; data of one's own stays as it is."""
    whole = attcem.data.load_data

    def load_data(name: str, **options: Any) -> Data:
        return small if name == "fashion" else whole(name, **options)

    for module in (attcem, attcem.data, attcem.parts):
        patch.setattr(module, "load_data", load_data, raising=False)
    for name in list(SUITES):
        patch.setitem(SUITES, name, replace(suite, name=name))


def shrink(data: Data, **sizes: int) -> Data:
    """A few pictures of every part, from all over it: no class is missing."""
    sizes = SIZES | sizes
    parts = {name: getattr(data, name)[:: len(getattr(data, name)) // size][:size] for name, size in sizes.items()}
    return Data(name=data.name, class_names=data.class_names, draw={"sizes": sizes}, **parts)


if __name__ == "__main__":
    from attcem.cli import main

    shorten(pytest.MonkeyPatch(), shrink(attcem.data.load_data("fashion"), private=256), BRIEF)
    sys.exit(main(sys.argv[1:]))
