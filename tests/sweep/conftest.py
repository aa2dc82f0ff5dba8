"""One undisturbed sweep, to which the others are compared."""

from pathlib import Path

import pytest

from attcem.cli import main
from tests.forked import forking
from tests.sweep.made import write_tiny

SEEDS = ["--seeds", "0", "1"]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("sweep"))


@pytest.fixture(scope="session")
def undisturbed(tiny: Path) -> Path:
    out = tiny.parent / "undisturbed"
    with forking():
        assert main(["sweep", str(tiny), *SEEDS, "--jobs", "2", "--out", str(out)]) == 0
    return out
