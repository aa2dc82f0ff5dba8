"""An artifact that several files send from, made once."""

import pytest

from attcem.defences import Noise, Wire
from tests.ship.audited import audited_artifact


@pytest.fixture(scope="session")
def audited(tmp_path_factory):
    return audited_artifact(tmp_path_factory.mktemp("ship") / "artifact", Noise(0.3), Wire(bits=8))
