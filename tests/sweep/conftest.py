"""One undisturbed sweep, to which the others are compared."""

from pathlib import Path

import pytest

from attcem.cli import main
from tests.conftest import Once
from tests.forked import forking
from tests.sweep.made import write_tiny

SEEDS = ["--seeds", "0", "1"]


@pytest.fixture(scope="session")
def tiny(once: Once) -> Path:
    return once("sweep", write_tiny) / "tiny.yaml"


@pytest.fixture(scope="session")
def undisturbed(once: Once, tiny: Path) -> Path:
    def sweep(out: Path) -> None:
        with forking():
            assert main(["sweep", str(tiny), *SEEDS, "--jobs", "2", "--out", str(out)]) == 0

    return once("undisturbed", sweep)
