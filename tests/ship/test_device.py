"""The device sends what was audited and nothing else, no more often than its budget, and the same bytes again."""

import inspect
import json
import os
import shutil
import socket
import threading

import numpy as np
import pytest
from PIL import Image

import attcem
from attcem.cli import main
from attcem.ship import Budget, OverBudget, Unreachable, delivery, device
from attcem.ship.graphs import open_session
from attcem.ship.randomness import draw
from attcem.ship.release import open_release
from tests.ship.audited import recording_cloud

SHAPE = (1, 28, 28)


def picture(seed=0):
    return np.random.default_rng(seed).random(SHAPE, dtype=np.float32)


@pytest.fixture
def cloud(audited, monkeypatch):
    monkeypatch.setattr(delivery, "FIRST_PAUSE", 0.001)
    with recording_cloud(audited) as recorded:
        yield recorded


def unused_url():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def test_only_released_values_leave(audited, cloud, tmp_path, monkeypatch):
    drawn = []

    def record(law, shape, source):
        drawn.append(draw(law, shape, source))
        return drawn[-1]

    monkeypatch.setattr("attcem.ship.release.draw", record)
    with attcem.Device(audited, cloud=cloud.url, state=tmp_path) as sender:
        answers = [sender.send(picture()) for _ in range(2)]
    session = open_session(audited / "device.onnx")
    wanted = [session.run(None, {"image": picture()[None], "noise": noise})[0] for noise in drawn]
    assert cloud.tensors() == [sent.tobytes() for sent in wanted]
    assert cloud.tensors()[0] != cloud.tensors()[1]
    for head, body, sent in zip(cloud.headers, cloud.bodies, wanted, strict=True):
        said = json.loads(body[: int(head["Inference-Header-Content-Length"])])
        assert set(said) == {"id", "inputs", "outputs"} and len(said["inputs"]) == 1
        assert said["inputs"][0]["shape"] == list(sent.shape) and said["inputs"][0]["datatype"] == "UINT8"
        known = {"Host", "Accept", "Accept-Encoding", "Connection", "User-Agent", "Content-Type", "Content-Length"}
        assert set(head) - known == {"Inference-Header-Content-Length"}
    logits = open_session(audited / "cloud.onnx").run(None, {"sent": wanted[0]})[0][0]
    assert answers[0].label == f"class {logits.argmax()}" and sum(answers[0].probabilities.values()) == pytest.approx(1)
    assert len(cloud.ports) == 1  # one connection, kept open


def test_the_noise_comes_from_the_operating_system_and_no_user_of_a_device_can_change_that():
    assert inspect.signature(open_release).parameters["source"].default is os.urandom
    assert "source" not in inspect.signature(attcem.Device).parameters


def test_a_second_try_sends_the_same_bytes(audited, cloud, tmp_path):
    cloud.statuses = [503, 429]
    with attcem.Device(audited, cloud=cloud.url, state=tmp_path) as sender:
        sender.send(picture())
    assert len(cloud.bodies) == 3 and len(set(cloud.bodies)) == 1


def test_a_refusal_is_not_tried_again(audited, cloud, tmp_path):
    cloud.statuses = [400]
    with (
        attcem.Device(audited, cloud=cloud.url, state=tmp_path) as sender,
        pytest.raises(ValueError, match=r"refused the message .*not now"),
    ):
        sender.send(picture())
    assert len(cloud.bodies) == 1 and sender.waiting == 0


def test_messages_wait_on_disk_and_leave_as_they_were_released(audited, cloud, tmp_path):
    options = {"state": tmp_path, "retries": 1, "queue": 2}
    with attcem.Device(audited, cloud=unused_url(), **options) as sender:
        for seed in range(2):
            with pytest.raises(Unreachable, match="after 2 tries: the message waits as"):
                sender.send(picture(seed))
        with pytest.raises(ValueError, match="2 messages wait already"):
            sender.send(picture(2))
        kept = [file.read_bytes() for file in sorted(tmp_path.glob("waiting-*/*.sent"))]
        assert sender.waiting == 2 and all(len(content) == 7 for content in kept)
    with attcem.Device(audited, cloud=cloud.url, **options) as later:  # a restart
        assert len(later.send_waiting()) == 2 and later.waiting == 0
    assert cloud.tensors() == kept


def test_what_is_delivered_before_the_cloud_falls_silent_is_told(audited, cloud, tmp_path):
    with attcem.Device(audited, cloud=cloud.url, state=tmp_path, retries=0) as sender:
        cloud.statuses = [503, 503]
        for seed in range(2):
            with pytest.raises(Unreachable):
                sender.send(picture(seed))
        cloud.statuses = []
        ask = sender._ask
        calls = []

        def once(id, sent):
            calls.append(id)
            if len(calls) > 1:
                raise Unreachable("silent")
            return ask(id, sent)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(device.Device, "_ask", lambda _, id, sent: once(id, sent))
            assert list(sender.send_waiting()) == calls[:1]
        assert sender.waiting == 1 and len(sender.send_waiting()) == 1


def near(changed):
    return np.clip(changed, 0, 1).astype(np.float32)


def test_a_picture_has_a_budget_that_a_restart_does_not_renew(audited, cloud, tmp_path):
    for _ in range(2):
        with attcem.Device(audited, cloud=cloud.url, state=tmp_path, budget=Budget(picture=2)) as sender:
            sender.send(picture())
    with (
        attcem.Device(audited, cloud=cloud.url, state=tmp_path, budget=Budget(picture=2)) as sender,
        pytest.raises(OverBudget, match="2 sends of this picture were made, and the budget is 2: nothing was sent"),
    ):
        sender.send(picture())
    assert len(cloud.bodies) == 2


def test_near_duplicates_share_a_budget_and_other_pictures_do_not(audited, cloud, tmp_path):
    rng = np.random.default_rng(1)
    level = picture().copy()
    level[0, 3, 3] += 1 / 255
    alike = [level, near(0.8 * picture() + 0.1), near(picture() + 0.02 * rng.normal(size=SHAPE))]
    with attcem.Device(audited, cloud=cloud.url, state=tmp_path, budget=Budget(lookalikes=1)) as sender:
        sender.send(picture())
        for changed in alike:
            with pytest.raises(OverBudget, match="near-duplicates were made"):
                sender.send(near(changed))
        sender.send(picture(1))
    assert len(cloud.bodies) == 2


def test_all_pictures_and_nats_have_budgets(audited, cloud, tmp_path):
    with attcem.Device(audited, cloud=cloud.url, state=tmp_path / "a", budget=Budget(total=2)) as sender:
        sender.send(picture(0)), sender.send(picture(1))
        with pytest.raises(OverBudget, match="all pictures together"):
            sender.send(picture(2))
    with attcem.Device(audited, cloud=cloud.url, state=tmp_path / "b", budget=Budget(nats=6)) as sender:
        sender.send(picture()), sender.send(picture())  # 2.5 nats each, by the audit
        with pytest.raises(OverBudget, match=r"told up to 5 nats, a send tells up to 2\.5, and the budget is 6"):
            sender.send(picture())


def test_without_a_budget_a_picture_is_sent_as_often_as_was_attacked(audited, tmp_path):
    with attcem.Device(audited, cloud="http://127.0.0.1:9", state=tmp_path) as sender:
        assert sender.budget == Budget(picture=16, lookalikes=16, total=100_000)


def test_two_devices_at_once_never_exceed_the_budget(audited, cloud, tmp_path):
    refused = []

    def work():
        with attcem.Device(audited, cloud=cloud.url, state=tmp_path, budget=Budget(picture=5)) as sender:
            for _ in range(4):
                try:
                    sender.send(picture())
                except OverBudget:
                    refused.append(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    [thread.start() for thread in threads], [thread.join() for thread in threads]
    assert len(cloud.bodies) == 5 and len(refused) == 7


@pytest.mark.parametrize("lost", ["secret", "sends.npz"])
def test_a_ledger_that_lost_a_part_sends_nothing(audited, cloud, tmp_path, lost):
    with attcem.Device(audited, cloud=cloud.url, state=tmp_path) as sender:
        sender.send(picture())
        (tmp_path / lost).unlink()
        with pytest.raises(ValueError, match=f"lacks {lost}, so nobody knows what was sent"):
            sender.send(picture())
        (tmp_path / lost).write_bytes(b"damaged")
        with pytest.raises(ValueError, match="is damaged"):
            sender.send(picture())
    assert len(cloud.bodies) == 1


def test_what_is_kept_tells_nothing_of_the_pictures(audited, cloud, tmp_path):
    for folder in ("a", "b"):
        with attcem.Device(audited, cloud=cloud.url, state=tmp_path / folder) as sender:
            sender.send(picture())
    one, other = (np.load(tmp_path / folder / "sends.npz") for folder in ("a", "b"))
    assert all((one[column] != other[column]).mean() > 0.9 for column in ("exact", "near"))  # another secret
    assert (tmp_path / "a" / "secret").stat().st_mode & 0o077 == 0


def test_an_artifact_without_an_audit_is_refused(audited, tmp_path):
    folder = shutil.copytree(audited, tmp_path / "artifact")
    data = json.loads((folder / "artifact.json").read_text())
    data["files"] = {name: file for name, file in data["files"].items() if not name.startswith("audit/")}
    (folder / "artifact.json").write_text(json.dumps(data))
    with pytest.raises(ValueError, match="shipped without an audit"):
        attcem.Device(folder, cloud="http://127.0.0.1:9", state=tmp_path / "state")


def test_nothing_of_a_device_is_a_clean_latent(audited, tmp_path):
    """What it has: facts, a function that always draws, and what counts and carries; no graph to run without noise."""
    with attcem.Device(audited, cloud="http://127.0.0.1:9", state=tmp_path) as sender:
        public = {name for name in dir(sender) if not name.startswith("_")}
        held = {name: type(getattr(sender, name)).__name__ for name in sender.__slots__}
    assert public == {"artifact", "budget", "close", "send", "send_waiting", "waiting"}
    assert "InferenceSession" not in held.values() and held["_release"] == "function"


@pytest.mark.parametrize(
    "given, reason",
    [
        (np.zeros((28, 28), np.float32), "has the shape"),
        (np.full(SHAPE, np.nan, np.float32), "floats from 0 to 1"),
        (np.full(SHAPE, 255, np.uint8), "divide bytes by 255"),
        (np.full(SHAPE, 1.5, np.float32), "floats from 0 to 1"),
    ],
)
def test_what_is_no_picture_is_not_sent(audited, cloud, tmp_path, given, reason):
    with (
        attcem.Device(audited, cloud=cloud.url, state=tmp_path) as sender,
        pytest.raises(ValueError, match=reason),
    ):
        sender.send(given)
    assert not cloud.bodies


def test_files_must_fit_or_be_resized(audited, cloud, tmp_path):
    Image.new("RGB", (40, 30), "red").save(tmp_path / "large.jpg")
    (tmp_path / "text.png").write_text("no picture")
    bomb = Image.new("1", (9_000, 9_000))
    bomb.save(tmp_path / "bomb.png")
    with attcem.Device(audited, cloud=cloud.url, state=tmp_path / "state") as sender:
        for name, reason in (("large.jpg", "give --resize"), ("text.png", "give a PNG"), ("bomb.png", "too many|bomb")):
            with pytest.raises(ValueError, match=reason):
                sender.send(tmp_path / name)
        assert sender.send(str(tmp_path / "large.jpg"), resize=True).label.startswith("class")
    assert len(cloud.bodies) == 1


def test_the_command_sends_says_what_waits_and_delivers_it(audited, cloud, tmp_path, capsys):
    Image.new("L", (28, 28), 80).save(tmp_path / "a.png")
    Image.new("L", (56, 56), 80).save(tmp_path / "b.png")
    command = ["send", str(audited), "--state", str(tmp_path / "state"), "--retries", "0"]
    a, b = str(tmp_path / "a.png"), str(tmp_path / "b.png")
    assert main([*command, "--cloud", cloud.url, a]) == 0
    assert "a.png   class" in capsys.readouterr().out
    assert main([*command, "--cloud", cloud.url, b]) == 1 and "--resize" in capsys.readouterr().err
    assert main([*command, "--cloud", unused_url(), b, "--resize"]) == 1
    assert "1 of 1 messages wait: attcem send" in capsys.readouterr().err
    assert main([*command, "--cloud", cloud.url]) == 0 and "class" in capsys.readouterr().out
    assert main([*command, "--cloud", cloud.url, "--per-picture", "2", a]) == 1
    assert "2 sends of this picture were made, and the budget is 2" in capsys.readouterr().err
    assert len(cloud.bodies) == 2
    assert main([*command, "--cloud", cloud.url, "--resise", a]) == 2 and "--resize" in capsys.readouterr().err


@pytest.mark.parametrize("answer", [b"", b"[]", b"{}", b'{"outputs": [{"name": "logits"}]}', b"x" * 2_000_000])
def test_an_answer_that_is_none_is_an_error(audited, cloud, tmp_path, answer):
    cloud.answer = answer
    with (
        attcem.Device(audited, cloud=cloud.url, state=tmp_path) as sender,
        pytest.raises(ValueError, match="is it `attcem serve`"),
    ):
        sender.send(picture())


@pytest.mark.parametrize("url", ["ftp://host", "host:8000", "http://", "http://me:secret@host", "http://host?x=1"])
def test_an_address_is_plain(url):
    with pytest.raises(ValueError, match="not the address of a cloud"):
        delivery.check_address(url, None)


def test_a_key_crosses_no_network_in_the_clear():
    delivery.check_address("http://127.0.0.1:80", "key")
    with pytest.raises(ValueError, match="use https"):
        delivery.check_address("http://example.org", "key")
