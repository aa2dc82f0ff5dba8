"""Everything as a page says it, on a slice of the embedded pictures and with the shortest suite.

python -m tests.docs.quickly run fashion_none       # `attcem run fashion_none`, in seconds
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

import attcem
import attcem.assess
import attcem.data
from attcem.attacks import SUITES
from attcem.data import Data

SIZES = {"private": 640, "validation": 200, "public": 512, "test": 200}


def shorten(patch: pytest.MonkeyPatch, small: Data | None = None) -> None:
    """Replace the embedded data and every suite; data of one's own stays as it is."""
    whole = attcem.data.load_data

    def load_data(name: str, **options: Any) -> Data:
        return (small or shrink(whole(name))) if name == "fashion" else whole(name, **options)

    for module in (attcem, attcem.data):
        patch.setattr(module, "load_data", load_data, raising=False)
    for suite in SUITES:
        patch.setitem(SUITES, suite, SUITES["smoke"])
        patch.setitem(attcem.assess.SEEN, suite, 4_000)
    patch.setattr(attcem.assess, "PROBED", ())


def shrink(data: Data) -> Data:
    """The first pictures of every part."""
    parts = {name: getattr(data, name)[:size] for name, size in SIZES.items()}
    return Data(name=data.name, class_names=data.class_names, draw={"sizes": SIZES}, **parts)


if __name__ == "__main__":
    from attcem.cli import main

    shorten(pytest.MonkeyPatch())
    sys.exit(main(sys.argv[1:]))
