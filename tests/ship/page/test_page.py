"""What the page is made of, before any browser: files, words, policy, and what the numbers on it come from."""

import asyncio
import base64
import json
import re
import shutil

import httpx
import numpy as np
import pytest
import torch

from attcem.cli import main
from attcem.defences import Guard, Noise
from attcem.maths.similarity import structural_similarity
from attcem.pages import SCALES, beside, told_release
from attcem.ship import read_artifact
from attcem.ship.compact import compact
from attcem.ship.graphs import open_session
from attcem.ship.keys import Keys
from attcem.ship.page import read_page
from attcem.ship.page_routes import BROWSER, page_routes
from attcem.ship.server import http_app
from attcem.ship.service import CloudService
from tests.ship.page.made import SENDS

WORDS = json.loads((BROWSER / "strings.json").read_text())
SCRIPTS = "\n".join(path.read_text() for path in sorted(BROWSER.glob("*.js")))
MARKUP = (BROWSER / "index.html").read_text()
KEY = "0123456789abcdef"


def places(text):
    return sorted(re.findall(r"\{(\w+)\}", text))


def test_every_word_is_in_both_languages_and_fills_the_same_places():
    for name, said in WORDS.items():
        assert set(said) == {"en", "zh-CN"} and all(text.strip() for text in said.values()), name
        assert places(said["en"]) == places(said["zh-CN"]), name
        assert name == "sigma" or re.search(r"[\u4e00-\u9fff]", said["zh-CN"]), name
        assert not re.search(r"[\u4e00-\u9fff]", said["en"]), name


def test_every_word_that_the_page_says_is_in_the_catalogue_and_none_is_idle():
    quoted = set(re.findall(r'"([a-zA-Z]+)"', SCRIPTS))
    marked = set(re.findall(r'data-text="(\w+)"', MARKUP))
    asked = set(re.findall(r'say\("(\w+)"', SCRIPTS)) | marked
    assert not asked - set(WORDS)
    assert not {name for name in WORDS if " " not in name} - quoted - marked


def test_the_means_on_the_page_are_those_of_its_own_files(paged, paged_data):
    folder, _ = paged
    page = read_page(folder, read_artifact(folder))
    assert [stop.scale for stop in page.defended.stops] == list(SCALES) and len(page.undefended.stops) == 1
    assert page.defended.own == SCALES.index(1.0) and page.budget == SENDS
    twin = folder / "page" / "undefended"
    x = paged_data.test[: page.images].pixels()  # the mean over all test pictures does not depend on their order
    sent = open_session(twin / "device.onnx").run(None, {"image": x.contiguous().numpy()})[0]
    rebuilt = torch.from_numpy(open_session(twin / "attacker.onnx").run(None, {"sent": sent})[0])
    (stop,) = page.undefended.stops
    assert page.images == len(paged_data.test) and (rebuilt - x).square().mean().item() == pytest.approx(
        stop.leak.mse, rel=1e-4
    )
    assert structural_similarity(rebuilt, x).mean().item() == pytest.approx(stop.leak.ssim, abs=1e-4)
    answers = open_session(twin / "cloud.onnx").run(None, {"sent": sent})[0].argmax(1)
    assert (answers == paged_data.test[: page.images].y.numpy()).mean() == pytest.approx(stop.accuracy)


def test_examples_are_test_pictures(paged, paged_data):
    folder, _ = paged
    test = {
        picture.numpy().tobytes(): int(label)
        for picture, label in zip(paged_data.test.x, paged_data.test.y, strict=True)
    }
    for example in read_page(folder, read_artifact(folder)).examples:
        assert test[base64.b64decode(example.pixels)] == example.label


def test_the_attacker_is_told_the_noise_of_every_picture():
    z, scales = torch.zeros(3000, 40), (0.0, 1.0, 3.0)
    told = told_release(Guard(Noise(0.5)), scales, z)
    for place, scale in enumerate(scales):
        noise = told[told[:, -1] == place][:, :-1]
        assert 800 < len(noise) < 1200 and noise.std().item() == pytest.approx(0.5 * scale, rel=0.05)
    assert beside(torch.zeros(2, 5, 4, 3), torch.ones(2, 1)).shape == (2, 6, 4, 3)
    assert beside(torch.zeros(2, 5, 4), torch.ones(2, 1))[:, :, -1].eq(1).all()


def test_weights_in_eight_bits_compute_nearly_the_same(floats, tmp_path):
    copy = shutil.copyfile(floats / "cloud.onnx", tmp_path / "cloud.onnx")
    compact(copy)
    sent = np.random.default_rng(0).normal(size=(8, 7)).astype(np.float32)
    before, after = (open_session(path).run(None, {"sent": sent})[0] for path in (floats / "cloud.onnx", copy))
    assert copy.stat().st_size < 0.45 * (floats / "cloud.onnx").stat().st_size
    assert np.abs(after - before).max() < 0.03 * np.abs(before).max()


def test_a_page_that_is_not_the_artifacts_is_refused(paged, floats, tmp_path):
    folder = shutil.copytree(paged[0], tmp_path / "artifact")
    attacker = folder / "page" / "defended" / "attacker.onnx"
    attacker.write_bytes(attacker.read_bytes() + b" ")
    with pytest.raises(ValueError, match="is not the file that the page was made with: make it again"):
        read_page(folder, read_artifact(folder))
    shutil.copyfile(paged[0] / "page" / "defended" / "attacker.onnx", attacker)
    with pytest.raises(ValueError, match="was made for another artifact"):
        read_page(folder, read_artifact(floats))
    with pytest.raises(ValueError, match="has no page: make it with `attcem page"):
        read_page(floats, read_artifact(floats))


def test_a_twin_with_a_defence_is_refused(paged, capsys):
    assert main(["page", str(paged[0]), "--twin", str(paged[0])]) == 1
    assert "has a defence: give a twin that was trained without one" in capsys.readouterr().err


def fetched(folder, keys, *asked):
    service = CloudService(folder, keys=Keys(keys))
    app = http_app(service, page_routes(folder, service))

    async def fetch():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://cloud") as sender:
            return [await sender.get(path, headers=headers) for path, headers in asked]

    return asyncio.run(fetch())


def test_the_page_is_open_says_if_a_key_is_needed_and_lets_nothing_else_in(paged):
    wasm = "/page/vendor/ort-wasm-simd-threaded.wasm"
    index, facts, zipped, plain, missing = fetched(
        paged[0], [KEY], ("/", {}), ("/page/page.json", {}), (wasm, {"accept-encoding": "gzip"}),
        (wasm, {"accept-encoding": "identity"}), ("/page/../artifact.json", {}),
    )  # fmt: skip
    for reply in (index, facts, zipped, plain):
        policy = reply.headers["content-security-policy"]
        assert reply.status_code == 200 and "default-src 'none'" in policy
        assert "unsafe-inline" not in policy and "'unsafe-eval'" not in policy
    assert facts.json()["keys"] is True and facts.json()["model"] == "cloud"
    assert zipped.headers["content-encoding"] == "gzip" and zipped.headers["content-type"] == "application/wasm"
    assert zipped.content == plain.content and plain.content.startswith(b"\0asm")
    assert missing.status_code == 404
    (again,) = fetched(paged[0], [], ("/", {"if-none-match": index.headers["etag"]}))
    assert again.status_code == 304 and not again.content


def test_nothing_is_inline_and_every_address_is_the_servers_own():
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script>|javascript:", MARKUP)
    for text in (MARKUP, SCRIPTS, (BROWSER / "page.css").read_text()):
        assert set(re.findall(r"https?://[^\"'\s]+", text)) <= {"http://www.w3.org/2000/svg"}
