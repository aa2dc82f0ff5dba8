"""The page while runs go on: a real server, real files, real requests."""

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager
from threading import Thread
from urllib.request import urlopen

import pytest

from attcem.cli import main
from attcem.report.live import MOST, Handler, Server
from attcem.report.watch import Watch

from .made import make_result

PATIENCE = 180
CONFIG = "train: {epochs: 10}\n"
HISTORY = "epoch,loss,val_accuracy\r\n2,1.0,0.65\r\n3,0.9,0.71\r\n"


@contextmanager
def serving(folder):
    with Server([folder], 0) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def get(server, path="", host=None) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=PATIENCE)
    connection.request("GET", f"/{path}", headers={"Host": host or f"localhost:{server.server_port}"})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def started(folder, config=CONFIG, history=HISTORY):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(config)
    if history:
        (folder / "history.csv").write_text(history)
    return folder


def test_a_new_result_is_on_the_page_and_an_open_page_learns_of_it(tmp_path):
    with serving(tmp_path) as server:
        status, page = get(server)
        assert status == 200 and "No result yet" in page
        empty = json.loads(get(server, "version")[1])
        make_result(defence={"zebra": {"lam": 1.0}}).save(tmp_path / "a")
        told = json.loads(get(server, "version")[1])
        assert told["version"] != empty["version"] and told["lines"] == []
        page = get(server)[1]
        assert "zebra" in page and f'"{told["version"]}"' in page and "fetch(" in page
        assert page.rstrip().endswith("</html>") and json.loads(get(server, "version")[1]) == told
        make_result(defence={"walrus": {"lam": 1.0}}).save(tmp_path / "a", overwrite=True)
        assert json.loads(get(server, "version")[1])["version"] != told["version"]
        page = get(server)[1]
        assert "walrus" in page and "zebra" not in page


def test_only_this_machine_under_its_own_name_gets_an_answer(tmp_path):
    with serving(tmp_path) as server:
        assert server.server_address[0] == "127.0.0.1"
        for path in ("", "version"):
            for host in ("evil.example", f"evil.example:{server.server_port}", "127.0.0.1:1"):
                status, text = get(server, path, host)
                assert status == 403 and "version" not in text and "<" not in text
        assert get(server, host=f"127.0.0.1:{server.server_port}")[0] == 200
        assert get(server, "../etc/passwd")[0] == 404


def test_a_port_in_use_is_an_error_that_names_the_option(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["report", str(tmp_path), "--live", "--port", str(port)]) == 1
    assert f"port {port} is in use: choose another with --port" in capsys.readouterr().err
    assert main(["report", str(tmp_path), "--live", "--port", "70000"]) == 2
    assert main(["report", str(tmp_path / "missing"), "--live"]) == 1
    assert "is not a folder" in capsys.readouterr().err


def test_runs_without_a_result_tell_how_far_they_are(tmp_path):
    started(tmp_path / "a")
    started(tmp_path / "b", history="")
    started(tmp_path / "c", history="epoch,val_accuracy\n10,nan\n")
    started(tmp_path / "d", config="{}", history="epoch\n")
    _, page, lines = Watch([tmp_path], render=lambda results: "drawn").look()
    a, b, c, d = (line.replace(str(tmp_path), "") for line in lines)
    assert page == "" and re.fullmatch(r"/a: running: epoch 3 of 10, validation \.710 at \d\d:\d\d", a)
    assert b == "/b: running: first epoch of 10" and d == "/d: running: first epoch"
    assert re.fullmatch(r"/c: trained, no result yet: epoch 10 of 10 at \d\d:\d\d", c)


def test_the_page_is_drawn_again_only_for_a_new_result(tmp_path):
    drawn = []
    make_result().save(tmp_path / "done")
    going = started(tmp_path / "going")
    watch = Watch([tmp_path, tmp_path / "done"], render=lambda results: drawn.append(len(results)) or "page")
    first = watch.look()
    (going / "history.csv").write_text(HISTORY + "4,0.8,0.75\r\n")
    second = watch.look()
    assert drawn == [1] and first[:2] == second[:2]
    assert "epoch 3 of 10" in first[2][0] and "epoch 4 of 10" in second[2][0]
    make_result(seed=1).save(going)
    assert watch.look()[2] == [] and drawn == [1, 2]
    (going / "result.json").unlink()
    assert watch.look()[0] == first[0] and drawn == [1, 2, 1]


def broken_json(run):
    (run / "result.json").write_text('{"schema": ')


def strange_json(run):
    (run / "result.json").write_text('["attcem"]')


def without_parts(run):
    (run / "result.json").write_text('{"schema": "attcem-result-1"}')


def broken_scores(run):
    (run / "diagnostics.npz").write_bytes(b"PK half")


def broken_picture(run):
    (run / "images" / "original.png").write_bytes(b"half")


def broken_config(run):
    started(run, config="train: [")
    (run / "result.json").unlink()


@pytest.mark.parametrize(
    "spoil", [broken_json, strange_json, without_parts, broken_scores, broken_picture, broken_config]
)
def test_a_broken_run_is_named_and_the_others_are_shown(tmp_path, spoil):
    for name in ("good", "bad"):
        make_result(defence={name: {"lam": 1.0}}).save(tmp_path / name)
    spoil(tmp_path / "bad")
    watch = Watch(
        [tmp_path], render=lambda results: " ".join(name for run in results for name in run.config["defence"])
    )
    _, page, (line,) = watch.look()
    assert page == "good" and line.startswith(f"{tmp_path / 'bad'}: cannot be read: ") and "\n" not in line
    make_result(defence={"mended": {"lam": 1.0}}).save(tmp_path / "bad", overwrite=True)
    assert watch.look()[1:] == ("mended good", [])


def test_a_result_that_cannot_be_drawn_is_named_and_left_out(tmp_path):
    for name in ("good", "odd"):
        make_result(defence={name: {"lam": 1.0}}).save(tmp_path / name)

    def render(results):
        return " ".join("good" if "good" in run.config["defence"] else {}["axis"] for run in results)

    assert Watch([tmp_path], render).look()[1:] == ("good", [f"{tmp_path / 'odd'}: cannot be shown: KeyError: 'axis'"])


@contextmanager
def half_open(server, count):
    """So many callers that begin a request and never end it."""
    with ExitStack() as stack:
        callers = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.server_port), PATIENCE))
            for _ in range(count)
        ]
        for caller in callers:
            caller.sendall(b"GET / HTTP/1.1\r\n")
        yield callers


def test_callers_that_fall_silent_are_sent_away_with_their_threads(tmp_path, monkeypatch):
    assert Handler.timeout, "nobody may be silent for ever"
    monkeypatch.setattr(Handler, "timeout", 0.2)
    before = set(threading.enumerate())
    with serving(tmp_path) as server, half_open(server, 20) as callers:
        assert get(server)[0] == 200
        assert [caller.recv(1) for caller in callers] == [b""] * 20
        for thread in set(threading.enumerate()) - before:
            if "process_request_thread" in thread.name:
                thread.join(PATIENCE)
                assert not thread.is_alive()
        assert server.callers == [] and get(server)[0] == 200


def test_a_crowd_of_silent_callers_makes_room_for_a_good_one(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(Handler, "timeout", None)
    with serving(tmp_path) as server, half_open(server, MOST + 10) as callers:
        assert get(server)[0] == 200
        assert [caller.recv(1) for caller in callers[:10]] == [b""] * 10
        assert get(server)[0] == 200 and len(server.callers) <= MOST
    assert capfd.readouterr().err == ""


CHILD = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell may have it ignored
from attcem.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_ctrl_c_ends_it_cleanly(tmp_path):
    make_result(defence={"zebra": {"lam": 1.0}}).save(tmp_path / "run")
    line = [sys.executable, "-c", CHILD, "report", str(tmp_path), "--live", "--port", "0"]
    child = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        url = child.stdout.readline().split()[1]
        assert "zebra" in urlopen(url, timeout=PATIENCE).read().decode()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=PATIENCE)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 0 and err == "" and "ended" in out
