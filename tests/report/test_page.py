import io
import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

from attcem.report.page import LIBRARY, render
from attcem.report.tables import run_table
from attcem.runs import settings_of
from attcem.runs.leak import best_attack
from attcem.types import Explanation, Line, Result, Table

from .made import make_result, rich_result, scores

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
        self.ids: list[str] = []
        self.scripts = self.data = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        self.addresses += [value for name, value in attrs if name in ("src", "href", "xlink:href", "action", "data")]
        if tag == "img":
            assert dict(attrs)["alt"]
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack and self.stack[-1] not in ("style", "title", "script"):
            self.text += f"{data.strip()} " if data.strip() else ""
        if self.stack and self.stack[-1] == "script":
            is_data = data.startswith("[{")
            self.data += data if is_data else ""
            self.scripts += "" if is_data else data


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
    assert {"table", "img", "details", "nav", "main"} <= set(page.tags)
    assert len(page.ids) == len(set(page.ids))


def test_nothing_is_asked_of_the_network(results):
    html = render(results)
    page = read(html)
    assert all(address.startswith(("data:image/png;base64,", "#")) for address in page.addresses)
    assert {address[1:] for address in page.addresses if address.startswith("#")} <= set(page.ids)
    assert not re.search(r"https?://|@import|url\(|<link", html.replace(LIBRARY.read_text(), ""))
    assert "default-src 'none'" in html


def test_the_library_is_as_published_and_cannot_end_its_element():
    code = LIBRARY.read_text()
    assert "plotly.js (cartesian - minified) v4.1.1" in code[:200] and "</script" not in code and "<!--" not in code
    assert "MIT" in LIBRARY.with_name("PLOTLY-LICENSE").read_text()


def test_flags_come_first(results):
    text = read(render(results)).text
    assert text.startswith("Skip to the verdict This audit is flagged: 1 flag in 1 of 5 runs.")
    assert "loss still falling" in text
    assert "flagged:" not in read(render(results[:1])).text


def test_strings_of_a_config_are_escaped():
    evil = "</script><script>alert(1)</script><!--"
    run = rich_result(defence={evil: {"lam": 1, "x": evil}}, data={"name": evil, "root": f'"{evil}'}, flags=(evil,))
    run.labels, run.versions, run.commit = [evil] * 40, {evil: evil}, evil
    run.attacks |= {evil: scores(0.001)}
    run.gallery[evil], run.per_image[f"{evil}/mse"] = run.gallery["decoder"], run.per_image["decoder/mse"] * 0
    run.per_class, run.probes = {evil: {"mse": 1.0}}, {evil: {evil: {"mean": 1.0, "chance": 0.0}}}
    run.curves["pairs"] = {evil: 1.0, "all": 2.0}
    table = Table(evil, (evil,), (evil, evil), (Line((evil, evil), (0,)),))
    html = render([run, make_result(defence={"noise": {"sigma": 1}}, data={"name": evil})], [table])
    page = read(html)
    assert page.tags.count("script") == 3 and "alert" not in page.scripts
    assert evil in page.text
    assert "\\u003c/script" in html and json.loads(page.data)


def test_a_comparison_links_its_lines_to_their_runs(results):
    lines = (Line(("noise", "0.5", "reference"), (1, 2)), Line(("bound", "0.6", "hides more"), (3,)))
    page = read(render(results, [Table("fashion", ("p are corrected",), ("defence", "MSE", "verdict"), lines)]))
    assert "p are corrected" in page.text and "hides more" in page.text
    assert {"#run-2", "#run-3", "#run-4"} <= set(page.addresses)
    assert "At the same accuracy" not in read(render(results)).text
    reason = read(render(results, [Table("fashion", ("needs two defences",))]))
    assert "needs two defences" in reason.text


def test_every_number_links_to_its_run(results):
    for block in run_table(settings_of(results), {id(run): f"run-{i}" for i, run in enumerate(results)}):
        assert all(row.anchor for row in block if row.kind == "run")
    page = read(render(results))
    assert all(page.addresses.count(f"#run-{i}") >= 8 for i in range(1, 6))


def test_fifty_runs_fit_in_eight_megabytes():
    runs = [
        rich_result(defence={"gated": {"lam": lam}}, mse=0.001 * lam, size=32, attacked=300, pictures=260, epochs=60)
        for lam in range(1, 51)
    ]
    noise = np.random.default_rng(0).integers(0, 256, (200, 300, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, "PNG")
    for run in runs:
        run.explanations = [Explanation("1.png", "Attention", "On few images.", file.getvalue())]
    assert 4_000_000 < len(render(runs).encode()) < 8_000_000


def test_bounds_probes_and_costs_stand_beside_measurements():
    text = read(render([rich_result(), rich_result(defence=NOISE, mse=0.03)])).text
    assert "no noise: no bound" in text and "41.5" in text and "0.830" in text
    assert "the class" in text and "structure" in text and "feature_distance" not in text, "what they were measured by"
    assert "same_picture" in text and "attributes" in text and "1.16" in text and "1\u202f234\u202f567" in text


def test_a_configuration_shows_the_options_of_every_link():
    page = read(
        render([make_result(defence=[{"noise": {"sigma": 0.123}}, {"bound": {"lam": 1 / 3, "assign": "slot"}}])])
    )
    assert all(piece in page.text for piece in ("sigma: 0.123", "lam: 0.333333", "assign: slot"))


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
    assert [row.cells[i][0] for i in (0, 1, 2, 4, 8)] == ["–"] * 5
    assert {cell for baseline in baselines for cell in baseline.cells} == {("–", "")}
    assert not re.search(r"\b(nan|inf)\b", read(render([run])).text)


def test_small_errors_are_scientific():
    ((row, *_),) = run_table(settings_of([make_result(mse=3.21e-5)]))
    assert row.cells[1][0] == "3.2e-05"


def test_an_unmeasured_attack_is_never_best():
    run = make_result()
    run.attacks["broken"] = scores(math.nan)
    assert best_attack(run, run.attacks) == "decoder"
