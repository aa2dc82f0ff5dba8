import base64
import io
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from attcem.report.gallery import data_address, galleries
from attcem.report.page import render
from attcem.report.settings import settings_of
from attcem.report.tables import best_attack, run_table
from attcem.types import Result

from .made import make_result, scores

NOISE = {"noise": {"sigma": 0.5}}
VOID = {"meta", "img", "br", "hr", "link", "input"}


class Balance(HTMLParser):
    """Fails on a tag that closes nothing, and remembers text, tags and addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "xlink:href", "action", "data")]
        if tag == "img":
            assert dict(attrs)["alt"]
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack and self.stack[-1] not in ("style", "title"):
            self.text += f"{data.strip()} " if data.strip() else ""


def read(html: str) -> Balance:
    page = Balance()
    page.feed(html)
    page.close()
    assert page.stack == []
    return page


@pytest.fixture
def results() -> list[Result]:
    return [
        make_result(),
        make_result(mse=0.0231, accuracy=0.861, defence=NOISE, flags=("loss still falling",)),
        make_result(mse=0.075, accuracy=0.25, defence={"noise": {"sigma": 8}}),
        make_result(mse=0.05, defence={"bound": {"lam": 16}}, pictures=0, epochs=0),
        make_result(data={"name": "cifar10"}, channels=3),
    ]


def test_the_page_is_whole_and_holds_the_numbers(results):
    page = read(render(results))
    for piece in (
        "noise σ=0.5",
        "0.0231",
        "0.861",
        "cifar10",
        "bound λ=16",
        "mean image",
        "abc1234",
        "bottleneck: null",
    ):
        assert piece in page.text
    assert {"svg", "table", "img", "details"} <= set(page.tags)


def test_nothing_is_asked_of_the_network(results):
    html = render(results)
    assert all(address.startswith("data:image/png;base64,") for address in read(html).addresses)
    assert not re.search(r"https?://|@import|url\(|<script|<link", html)


def test_flags_come_first(results):
    assert read(render(results)).text.startswith("This audit is flagged: 1 warning in 1 of 5 runs.")
    assert "loss still falling" in render(results)
    assert "flagged:" not in read(render(results[:1])).text


def test_strings_of_a_config_are_escaped():
    evil = "<script>alert(1)</script>"
    run = make_result(defence={evil: {"x": evil}}, data={"name": evil, "root": f'"{evil}'}, flags=(evil,))
    run.labels, run.versions, run.commit = [evil] * 3, {evil: evil}, evil
    run.attacks |= {evil: scores(0.001)}
    run.gallery[evil] = run.gallery["decoder"]
    html = render([run, make_result(defence={"noise": 1}, data={"name": evil})])
    assert "<script" not in html
    assert evil in read(html).text


def test_baselines_are_always_in_the_table(results):
    for block in run_table(settings_of(results)):
        assert [row.name for row in block if row.kind == "baseline"] == [
            "mean image",
            "class mean",
            "nearest public image",
        ]


def test_seeds_are_summed_up_in_a_row():
    runs = [make_result(seed=seed, accuracy=accuracy) for seed, accuracy in enumerate((0.86, 0.88))]
    ((*_, first),) = [[row for row in block if row.kind == "mean"] for block in run_table(settings_of(runs))]
    assert first.cells[0] == ("0.870", "± 0.014")
    assert first.seed == "2 seeds"
    assert not [row for row in run_table(settings_of(runs[:1]))[0] if row.kind == "mean"]


def test_what_was_not_measured_is_a_dash():
    run = make_result(mse=math.nan, accuracy=math.inf)
    run.cost, run.baselines = {}, {}
    run.history = [{"epoch": 0, "loss": math.nan}, {"loss": math.inf}]
    ((row, *baselines),) = run_table(settings_of([run]))
    assert [row.cells[i][0] for i in (0, 1, 4, 7)] == ["–"] * 4
    assert {cell for baseline in baselines for cell in baseline.cells} == {("–", "")}
    assert not re.search(r"\b(nan|inf)\b", read(render([run])).text)


def test_small_errors_are_scientific():
    ((row, *_),) = run_table(settings_of([make_result(mse=3.21e-5)]))
    assert row.cells[1][0] == "3.2e-05"


def test_the_gallery_shows_best_attacks_with_their_errors(results):
    grey, colour = galleries(settings_of(results))
    assert [strip.kind for strip in grey.shown] == ["original", "undefended", "defended", "defended", "baseline"]
    assert grey.shown[1].note == "best attack: decoder"
    assert grey.shown[1].pictures[2].mse == f"{results[0].per_image['decoder/mse'][2]:.4f}"
    assert grey.shown[0].pictures[0].mse == ""
    assert [strip.note for strip in grey.folded if strip.kind == "undefended"] == ["attack: ridge"]
    assert colour.place[0] == "cifar10"


def test_other_pictures_are_another_gallery():
    other = make_result(defence=NOISE)
    other.gallery["original"] = 255 - other.gallery["original"]
    assert len(galleries(settings_of([make_result(), other]))) == 2


@pytest.mark.parametrize("channels", [1, 3])
def test_a_picture_survives_its_address(channels):
    picture = np.random.default_rng(0).integers(0, 256, (8, 6, channels), np.uint8)
    back = Image.open(io.BytesIO(base64.b64decode(data_address(picture).split(",")[1])))
    np.testing.assert_array_equal(np.asarray(back).reshape(picture.shape), picture)


def test_an_unmeasured_attack_is_never_best():
    run = make_result()
    run.attacks["broken"] = scores(math.nan)
    assert best_attack(run, run.attacks) == "decoder"
