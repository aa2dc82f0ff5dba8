"""The same application on Ray Serve."""

import re
import signal
import subprocess
import sys

import httpx
import numpy as np
import pytest

from attcem.cli import main
from attcem.ship.graphs import open_session
from tests.ship.asking import INFER, in_binary, in_json, read_logits


@pytest.mark.slow
def test_replicas_answer_as_one_server_does(shipped):
    command = [sys.executable, "-m", "attcem", "serve", str(shipped[2]), "--engine", "ray", "--replicas", "2"]
    with subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True) as server:
        url = re.search(r"http://127\.0\.0\.1:\d+", server.stdout.readline())[0]
        values = np.random.default_rng(0).integers(0, 256, (3, 4)).astype(np.uint8)
        wanted = open_session(shipped[2] / "cloud.onnx").run(None, {"sent": values})[0]
        for write in (in_json, in_binary) * 5:
            body, headers = write(values)
            reply = httpx.post(url + INFER, content=body, headers=headers)
            np.testing.assert_allclose(read_logits(reply.content, reply.headers), wanted, rtol=1e-4, atol=1e-6)
        wrong = httpx.post(url + INFER, content=b"{")
        assert wrong.status_code == 400 and "not JSON" in wrong.json()["error"]
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0


@pytest.mark.parametrize(
    "options, reason",
    [
        (["--replicas", "2"], "for --engine ray"),
        (["--engine", "ray", "--grpc-port", "0"], "--grpc-port is not for --engine ray"),
    ],
)
def test_options_of_the_other_engine_are_wrong_usage(shipped, options, reason, capsys):
    assert main(["serve", str(shipped[2]), *options]) == 2 and reason in capsys.readouterr().err


def test_without_ray_it_says_what_to_install(shipped, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["serve", str(shipped[2]), "--engine", "ray"]) == 1
    assert "pip install 'attcem[ray]'" in capsys.readouterr().err
