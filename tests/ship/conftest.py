"""A few exported artifacts: an export takes seconds."""

import subprocess

import pytest

from attcem.defences import Noise, Wire, create_defence
from attcem.ship import export
from tests.ship.audited import audited_artifact
from tests.ship.small import guarded, network


@pytest.fixture(scope="session")
def shipped(once):
    """Bytes cross: four bits a number."""
    model = network()
    guard = guarded(model, Noise(0.1), create_defence("dropout", rate=0.3), Wire(bits=4))
    return model, guard, once("shipped", lambda folder: export(model, guard, folder))


@pytest.fixture(scope="session")
def floats(once):
    """An artifact whose wire is float32."""
    return once("floats", lambda folder: audited_artifact(folder, Noise(0.1)))


@pytest.fixture(scope="session")
def audited(once):
    """An artifact that several files send from."""
    return once("audited", lambda folder: audited_artifact(folder, Noise(0.3), Wire(bits=8)))


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """The files of a certificate of this machine and of its key."""
    folder = tmp_path_factory.mktemp("tls")
    made = ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    made += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(["openssl", "req", "-x509", *made, *files], check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"
