"""The HTTP interface in this process: every answer belongs to its question, and every limit holds."""

import asyncio
import json

import httpx
import numpy as np
import pytest

from attcem.ship.batching import Batcher, profitable_rows
from attcem.ship.graphs import open_session
from attcem.ship.keys import VARIABLE, Keys, read_keys
from attcem.ship.limits import Limits, Rate
from attcem.ship.server import http_app
from attcem.ship.service import CloudService
from attcem.ship.tensors import Refused
from tests.ship.asking import INFER, in_binary, in_json, read_logits

KEY = "0123456789abcdef"


def client(service, **settings):
    transport = httpx.ASGITransport(http_app(service), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://cloud", **settings)


@pytest.fixture(scope="module")
def service(shipped):
    return CloudService(shipped[2])


def asked(service, *requests, **settings):
    """The replies to requests (method, path, and more as httpx takes it) that are sent at the same time."""

    async def ask():
        async with client(service, **settings) as sender:
            return await asyncio.gather(
                *(sender.request(method, path, **dict(*more)) for method, path, *more in requests)
            )

    return asyncio.run(ask())


def post(body, headers):
    return "POST", INFER, {"content": body, "headers": headers}


@pytest.mark.parametrize("write", [in_json, in_binary])
def test_logits_are_those_of_onnxruntime(write, shipped, floats):
    rng = np.random.default_rng(0)
    for folder, values in (
        (shipped[2], rng.integers(0, 256, (3, 4)).astype(np.uint8)),
        (floats, rng.normal(size=(3, 7)).astype(np.float32)),
    ):
        (reply,) = asked(CloudService(folder), post(*write(values)))
        wanted = open_session(folder / "cloud.onnx").run(None, {"sent": values})[0]
        np.testing.assert_allclose(read_logits(reply.content, reply.headers), wanted, rtol=1e-4, atol=1e-6)


def test_every_answer_belongs_to_its_question(floats):
    service = CloudService(floats, limits=Limits(concurrent=200))
    service.batcher.rows = 8
    rng = np.random.default_rng(0)
    questions = [rng.normal(size=(1 + place % 5, 7)).astype(np.float32) for place in range(120)]
    writers = [in_json, in_binary]
    requests = [post(*writers[place % 2](values, id=str(place))) for place, values in enumerate(questions)]
    replies = asked(service, *requests)
    for place, (values, reply) in enumerate(zip(questions, replies, strict=True)):
        found = read_logits(reply.content, reply.headers)
        np.testing.assert_allclose(found, service.run(values), rtol=1e-3, atol=1e-5)
        assert f'"id":"{place}"'.encode() in reply.content
    computed = service.meters.registry.get_sample_value("attcem_batch_pictures_count")
    assert computed < len(questions), "nothing was computed together"


def test_the_server_describes_itself(service):
    paths = ["/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/cloud", "/v2/models/cloud/ready"]
    paths += ["/v2/models/cloud/versions/1", "/v2/repository/index", "/metrics", "/openapi.json"]
    replies = dict(zip(paths, asked(service, *(("GET", path) for path in paths)), strict=True))
    assert {reply.status_code for reply in replies.values()} == {200}
    assert replies["/v2"].json()["extensions"] == ["binary_tensor_data", "model_repository"]
    assert replies["/v2/models/cloud"].json()["inputs"] == [{"name": "sent", "datatype": "UINT8", "shape": [-1, 4]}]
    assert replies["/v2/models/cloud"].json()["outputs"] == [{"name": "logits", "datatype": "FP32", "shape": [-1, 5]}]
    assert replies["/v2/repository/index"].json()[0]["state"] == "READY"
    described = replies["/openapi.json"].json()
    assert described["openapi"] == "3.1.0" and set(described["paths"]) >= {INFER, "/v2", "/metrics"}


def test_the_described_example_is_answered_and_health_is_for_everyone(shipped):
    service = CloudService(shipped[2], keys=Keys([KEY]))
    (reply,) = asked(service, ("GET", "/openapi.json"), headers={"authorization": f"Bearer {KEY}"})
    paths = reply.json()["paths"]
    example = paths[INFER]["post"]["requestBody"]["content"]["application/json"]["example"]
    (reply,) = asked(service, ("POST", INFER, {"json": example}), headers={"authorization": f"Bearer {KEY}"})
    assert reply.status_code == 200
    for path, methods in paths.items():
        for method, described in methods.items():
            (reply,) = asked(service, (method.upper(), path))
            assert str(reply.status_code) in described["responses"]
            assert reply.status_code == (200 if described.get("security") == [] else 401)


@pytest.mark.parametrize(
    "request_, status, reason",
    [
        (("GET", "/nowhere"), 404, "there is nothing here"),
        (("GET", INFER), 405, "GET is not for this address"),
        (("POST", "/v2/models/other/infer"), 404, "there is no model 'other': ask for 'cloud'"),
        (("GET", "/v2/models/cloud/versions/7"), 404, "version '7'"),
        (("POST", INFER), 400, "not JSON"),
        (("POST", INFER, {"content": b"{}", "headers": {"content-encoding": "gzip"}}), 415, "compressed"),
        (("POST", INFER, {"content": b"{}", "headers": {"content-length": "10000000000"}}), 413, "--max-body"),
        (("POST", INFER, {"content": b" " * 20_000_000}), 413, "--max-body"),
    ],
)
def test_a_refusal_is_json_that_names_the_fix(service, request_, status, reason):
    (reply,) = asked(service, request_)
    assert reply.status_code == status and reason in reply.json()["error"]


def test_a_body_without_length_is_stopped_where_it_is_too_long(service):
    sent = 0

    async def endless():
        nonlocal sent
        while True:
            sent += 1_000_000
            yield b" " * 1_000_000

    (reply,) = asked(service, ("POST", INFER, {"content": endless()}))
    assert reply.status_code == 413 and sent < 40_000_000


def test_numbers_too_large_to_compute_with_are_refused(floats):
    (reply,) = asked(CloudService(floats), post(*in_binary(np.full((1, 7), 3e38, np.float32))))
    assert reply.status_code == 400 and "no logit is finite" in reply.json()["error"]


def test_a_failure_inside_tells_nothing_of_it(shipped):
    service = CloudService(shipped[2])
    service.batcher.run = lambda values: 1 / 0
    replies = asked(service, *[post(*in_json(np.zeros((1, 4), np.uint8)))] * 3)
    assert [reply.status_code for reply in replies] == [500] * 3
    assert replies[0].json() == {"error": "the server failed: its log says why"}
    assert b'code="500",protocol="http"} 3.0' in service.meters.text()


def test_only_who_has_a_key_is_served(shipped, tmp_path):
    (tmp_path / "keys").write_text(f"# ours\n{KEY}\nanother-key-of-ours\n")
    service = CloudService(shipped[2], keys=read_keys(tmp_path / "keys"))
    body, _ = in_json(np.zeros((1, 4), np.uint8))
    told = [None, "Bearer", "Bearer wrong", f"Basic {KEY}", f"Bearer {KEY}", "bearer another-key-of-ours"]
    headers = [{} if one is None else {"authorization": one} for one in told]
    replies = asked(service, *(post(body, each) for each in headers))
    assert [reply.status_code for reply in replies] == [401, 401, 401, 401, 200, 200]
    assert "Authorization: Bearer KEY" in replies[0].json()["error"] and replies[0].headers["www-authenticate"]
    paths = ["/v2", "/metrics", "/v2/models/cloud", "/openapi.json", "/v2/repository/index", "/v2/health/live"]
    assert [reply.status_code for reply in asked(service, *(("GET", path) for path in paths))] == [401] * 5 + [200]


def test_keys_are_read_or_refused_and_never_repeated(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert not read_keys(None).digests
    monkeypatch.setenv(VARIABLE, f"{KEY} {KEY[::-1]}")
    assert len(read_keys(None).digests) == 2 and KEY not in repr(vars(read_keys(None)))
    (tmp_path / "keys").write_text("short\n")
    with pytest.raises(ValueError, match=r"key 1 of .* too short") as error:
        read_keys(tmp_path / "keys")
    assert "short\n" not in str(error.value)
    (tmp_path / "keys").write_text("# none\n")
    with pytest.raises(ValueError, match="holds no key"):
        read_keys(tmp_path / "keys")
    with pytest.raises(Refused):
        Keys([KEY]).check("Bearer \udcff", "")


def test_a_rate_allows_a_second_at_once_and_then_its_share():
    now = 0.0
    rate = Rate(4.0, lambda: now)

    def passed(client, count):
        allowed = 0
        for _ in range(count):
            try:
                rate.check(client)
                allowed += 1
            except Refused as refused:
                assert refused.status == 429 and 0 < refused.wait <= 1
        return allowed

    assert passed("a", 10) == 4 and passed("b", 3) == 3
    now = 0.5
    assert passed("a", 10) == 2
    now = 100.0
    assert passed("a", 10) == 4


def test_who_asks_too_often_or_too_much_at_once_is_told_when_to_come_back(shipped):
    one = post(*in_json(np.zeros((1, 4), np.uint8)))
    replies = asked(CloudService(shipped[2], limits=Limits(rate=2.0)), *[one] * 5)
    assert sorted(reply.status_code for reply in replies) == [200, 200, 429, 429, 429]
    service = CloudService(shipped[2], limits=Limits(concurrent=2))
    replies = asked(service, *[one] * 5)
    assert sorted(reply.status_code for reply in replies) == [200, 200, 503, 503, 503]
    assert {reply.headers["retry-after"] for reply in replies if reply.status_code == 503} == {"1"}
    assert service.places.taken == 0
    text = service.meters.text().decode()
    assert 'attcem_requests_total{code="503",protocol="http"} 3.0' in text and "attcem_requests_in_flight 0.0" in text


def test_batches_are_as_large_as_pays():
    now = 0.0

    def run_as(seconds):
        def run(batch):
            nonlocal now
            now += seconds(len(batch))

        return run

    one = np.zeros((1, 2))
    assert profitable_rows(run_as(lambda rows: 1e-3 + 1e-6 * rows), one, 64, lambda: now) == 64
    assert profitable_rows(run_as(lambda rows: 1e-3 * rows), one, 64, lambda: now) == 1
    assert profitable_rows(run_as(lambda rows: 1e-3 * max(rows, 8)), one, 64, lambda: now) == 8


@pytest.mark.parametrize("pace", [0.0, 1.0], ids=["at once", "in a thread"])
def test_who_goes_away_changes_nobodys_answer(pace):
    async def ask():
        batcher = Batcher(lambda batch: 2 * batch, rows=4)
        batcher.pace = pace
        asking = [asyncio.ensure_future(batcher(np.full((2, 1), place))) for place in range(9)]
        await asyncio.sleep(0)
        asking[3].cancel()
        asking[4].cancel()
        answers = await asyncio.gather(*asking, return_exceptions=True)
        batcher.close()
        return answers

    for place, answer in enumerate(asyncio.run(ask())):
        assert isinstance(answer, asyncio.CancelledError) if place in (3, 4) else (answer == 2 * place).all()


def test_a_model_is_named_as_an_address_can_be(shipped):
    with pytest.raises(ValueError, match="cannot be part of an address"):
        CloudService(shipped[2], name="a/b")


def test_metrics_count_what_happened(service):
    asked(service, post(*in_json(np.zeros((2, 4), np.uint8))), post(b"{", {}))
    text = service.meters.text().decode()
    assert 'attcem_requests_total{code="400",protocol="http"}' in text and "attcem_compute_seconds_count" in text
    assert json.dumps(KEY) not in text
