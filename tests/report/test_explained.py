"""The pictures of `attcem explain` on the page."""

import io
import json

import pytest
from PIL import Image

from attcem.report import inside
from attcem.report.page import render
from attcem.runs import settings_of
from attcem.types import Explanation, Result

from .made import make_result
from .test_page import read

HEADING = "Inside the defence"


def picture(colour: str, dpi: int = 192) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (400, 100), colour).save(file, "PNG", dpi=(dpi, dpi))
    return file.getvalue()


def test_every_explained_run_has_its_pictures_and_others_none():
    plain, first, second = (make_result(seed=seed, defence={"noise": {"sigma": seed}}) for seed in range(3))
    first.explanations = [Explanation("1.png", "Attention", "On few images.", picture("red"))]
    second.explanations = [Explanation("1.png", "Gates", "Shut.", picture("blue", 96))]
    html = render([plain, first, second])
    page = read(html)
    assert HEADING in page.text
    assert page.text.index("On few images.") < page.text.index("Shut.")
    assert 'width="200" height="50"' in html and 'width="400" height="100"' in html
    assert HEADING not in read(render([plain])).text


def test_words_are_escaped():
    run = make_result()
    run.explanations = [Explanation("1.png", "<script>", '"><script>', picture("red"))]
    assert read(render([run])).tags.count("script") == 3


def test_pictures_that_do_not_fit_are_left_out_and_said_so(monkeypatch):
    runs = [make_result(defence={"noise": {"sigma": s}}) for s in (1, 2)]
    for run in runs:
        run.explanations = [Explanation("1.png", "Attention", "On few images.", picture("red"))]
    monkeypatch.setattr(inside, "ROOM", 2 * len(picture("red")))
    assert [len(view.figures) for view in inside.views(settings_of(runs))] == [1, 0]
    assert read(render(runs)).text.count("report this run alone") == 1


def test_explanations_are_read_with_a_result_and_not_written_with_it(tmp_path):
    run = make_result()
    run.explanations = [Explanation("1.png", "Attention", "On few images.", picture("red"))]
    run.save(tmp_path)
    assert "explanations" not in json.loads((tmp_path / "result.json").read_text())
    assert Result.load(tmp_path).explanations == []
    (tmp_path / "explain").mkdir()
    (tmp_path / "explain" / "1.png").write_bytes(picture("red"))
    entry = {"title": "Attention", "caption": "On few images.", "file": "1.png"}
    (tmp_path / "explain" / "entries.json").write_text(json.dumps([entry]))
    assert Result.load(tmp_path).explanations == run.explanations


@pytest.mark.parametrize("written", ["[", '[{"file": "gone.png"}]', '[{"title": "x"}]', "[1]", '{"file": "1.png"}'])
def test_a_broken_list_says_how_to_make_it_anew(tmp_path, written):
    make_result().save(tmp_path)
    (tmp_path / "explain").mkdir()
    (tmp_path / "explain" / "entries.json").write_text(written)
    with pytest.raises(ValueError, match="attcem explain"):
        Result.load(tmp_path)


def test_nothing_outside_the_folder_is_read(tmp_path):
    (tmp_path / "secret.png").write_bytes(picture("red"))
    (tmp_path / "run" / "explain").mkdir(parents=True)
    entry = {"title": "x", "caption": "x", "file": "../../secret.png"}
    (tmp_path / "run" / "explain" / "entries.json").write_text(json.dumps([entry]))
    with pytest.raises(ValueError, match="attcem explain"):
        Explanation.read(tmp_path / "run" / "explain")
