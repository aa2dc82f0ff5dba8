"""One artifact with a page."""

from dataclasses import replace

import pytest

from attcem.attacks import SUITES
from attcem.cli import main
from attcem.data import load_data
from tests.ship.page.made import artifacts


@pytest.fixture(scope="session")
def paged(once, fashion):
    """An artifact with a page, and its undefended twin."""

    def write(folder):
        folder.mkdir()
        one, twin = artifacts(folder, fashion)
        smoke = SUITES["smoke"]
        brief = replace(smoke, attacks={name: attack.brief() for name, attack in smoke.attacks.items()})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("attcem.pages.SUITES", {"smoke": brief})
            assert main(["page", str(one), "--twin", str(twin)]) == 0

    folder = once("paged", write)
    return folder / "one" / "artifact", folder / "twin" / "artifact"


@pytest.fixture(scope="session")
def paged_data(paged):
    """The data that both were trained on."""
    return load_data(f"npz:{paged[0].parent.parent / 'tiny.npz'}")
