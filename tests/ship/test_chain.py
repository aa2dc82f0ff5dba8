"""The whole way of a picture: our device, our server, and the very logits of what left."""

import httpx
import numpy as np
import pytest

import attcem
from attcem.defences import Noise, Wire
from attcem.ship.device import Prediction
from attcem.ship.graphs import open_session
from attcem.ship.keys import Keys
from attcem.ship.limits import Limits
from attcem.ship.randomness import draw
from attcem.ship.service import CloudService
from tests.ship.audited import audited_artifact
from tests.ship.running import running

KEY = "0123456789abcdef"
BLACK = np.zeros((1, 28, 28), np.float32)


@pytest.fixture(scope="module")
def nibbles(tmp_path_factory):
    return audited_artifact(tmp_path_factory.mktemp("ship") / "nibbles", Noise(0.3), Wire(bits=4))


@pytest.mark.parametrize(
    "wire", ["nibbles", *(pytest.param(wire, marks=pytest.mark.slow) for wire in ("audited", "floats"))]
)
def test_a_device_gets_the_logits_of_what_it_sent(wire, request, tmp_path, monkeypatch):
    folder, drawn = request.getfixturevalue(wire), []

    def recorded(*given):
        drawn.append(draw(*given))
        return drawn[-1]

    monkeypatch.setattr("attcem.ship.release.draw", recorded)
    pictures = np.random.default_rng(0).random((4, 1, 28, 28), dtype=np.float32)
    service = CloudService(folder, name="shop", keys=Keys([KEY]))
    with (
        running(service) as port,
        attcem.Device(folder, f"http://127.0.0.1:{port}", name="shop", key=KEY, state=tmp_path) as device,
    ):
        found = [device.send(picture) for picture in pictures]
    sender, cloud = (open_session(folder / f"{half}.onnx") for half in ("device", "cloud"))
    assert len(drawn) == len(pictures)
    for picture, noise, prediction in zip(pictures, drawn, found, strict=True):
        logits = cloud.run(None, {"sent": sender.run(None, {"image": picture[None], "noise": noise})[0]})[0][0]
        wanted = Prediction.of(logits.astype(np.float64), device.artifact.picture.classes)
        assert prediction.label == wanted.label
        assert prediction.probabilities == pytest.approx(wanted.probabilities, abs=1e-5)


def test_a_device_waits_for_its_turn(audited, tmp_path):
    service = CloudService(audited, limits=Limits(rate=2.0))
    with running(service) as port, attcem.Device(audited, f"http://127.0.0.1:{port}", state=tmp_path) as device:
        for _ in range(4):
            device.send(BLACK)
    assert service.meters.registry.get_sample_value("attcem_requests_total", {"protocol": "http", "code": "429"})


@pytest.mark.parametrize(
    "settings, reason", [({"key": "x" * 16}, "not one of this server's"), ({"key": KEY, "name": "other"}, "no model")]
)
def test_a_device_is_told_what_is_wrong(settings, reason, audited, tmp_path):
    with (
        running(CloudService(audited, keys=Keys([KEY]))) as port,
        attcem.Device(audited, f"http://127.0.0.1:{port}", state=tmp_path, **settings) as device,
        pytest.raises(ValueError, match=reason),
    ):
        device.send(BLACK)


def test_a_key_crosses_in_tls(audited, certificate, tmp_path):
    with running(CloudService(audited, keys=Keys([KEY])), certificate) as port:
        settings = {"key": KEY, "state": tmp_path, "ca": str(certificate[0])}
        with attcem.Device(audited, f"https://127.0.0.1:{port}", **settings) as device:
            assert device.send(BLACK).label in device.artifact.picture.classes
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{port}/v2/health/live")
