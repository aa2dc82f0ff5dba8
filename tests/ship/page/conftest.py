"""One artifact with a page for each process of the suite."""

import pytest

from attcem.cli import main
from attcem.data import load_data
from tests.ship.page.made import artifacts


@pytest.fixture(scope="session")
def paged(tmp_path_factory, fashion):
    """An artifact with a page, and its undefended twin."""
    one, twin = artifacts(tmp_path_factory.mktemp("paged"), fashion)
    assert main(["page", str(one), "--twin", str(twin)]) == 0
    return one, twin


@pytest.fixture(scope="session")
def paged_data(paged):
    """The data that both were trained on."""
    return load_data(f"npz:{paged[0].parent.parent / 'tiny.npz'}")
