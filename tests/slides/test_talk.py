"""What a talk does with what runs have, and with what they lack."""

import sys

import pytest

from attcem.cli import main
from attcem.language import language
from attcem.slides import SLIDES, write_slides
from attcem.slides.chain import Place, steps
from attcem.slides.equations import equations
from attcem.slides.method import method
from attcem.slides.page import Block, Picture, Text
from attcem.slides.plot import scale
from attcem.slides.story import most_covered, stories
from tests.report.made import make_result, rich_result
from tests.slides.made import ATTENTION, NOISE, SLOT, bare, several

OWN = {"noise": {"sigma": 0.1}, "mine.defences:KeepLargest": {"keep": 0.5}}
SPARSE = {
    "one run without a defence": [{}],
    "one run with a defence": [NOISE],
    "a defence of their own": [{}, OWN],
    "options of another version": [{}, {"gmm": {"lam": 1.0, "no_longer": 3}}],
}


def tell(results, code="en"):
    return stories(results, language(code))


def words(page) -> list[str]:
    return [part.words for part in page.parts if isinstance(part, Block)]


@pytest.mark.parametrize("code", ["en", "zh"])
@pytest.mark.parametrize("defences", SPARSE.values(), ids=SPARSE)
def test_what_runs_lack_is_left_out_and_named(tmp_path, defences, code):
    pytest.importorskip("pptx")
    runs = [bare(make_result(defence=defence, mse=0.01 * (1 + place))) for place, defence in enumerate(defences)]
    written = write_slides(runs, tmp_path / "talk.pptx", code)
    assert "no gallery: no run kept pictures of an attack" in written.notes
    assert any(note.startswith("no training") for note in written.notes)
    assert written.slides >= 4 and written.file.stat().st_size > 0


def test_several_data_sets_follow_one_another(tmp_path):
    pytest.importorskip("pptx")
    other = several(1)[0]
    other.config["data"] = {"name": "cifar10"}
    alone, both = (write_slides(runs, tmp_path / "t.pptx") for runs in ([several(1)[0]], [several(1)[0], other]))
    assert both.slides == 2 * alone.slides
    assert all("cifar10" in note or "fashion" in note for note in both.notes)


def test_the_drawing_is_the_chain_of_the_run():
    chain = {"wire": {"bits": 8}} | SLOT
    run = rich_result(defence=chain, model={"backbone": "vgg11_bn", "cut": 4, "crossing": ATTENTION})
    found = [(step.name, step.place) for step in steps(run)]
    assert found == [
        ("attention tokens=4 width=16", Place.CROSSING),
        ("noise σ=0.1", Place.RELEASE),
        ("slot λ=16", Place.TRAINING),
        ("wire bits=8", Place.RELEASE),
    ]
    (story,) = tell([run])
    (page,) = method(story)
    drawn = words(page)
    at = [
        next(place for place, text in enumerate(drawn) if name in text)
        for name in ("encoder", "attention", "noise", "wire")
    ]
    assert at == sorted(at) and "in training only\nslot λ=16" in drawn
    assert any("attacker" in text for text in drawn)
    left = {part.words: part.box.left for part in page.parts if isinstance(part, Block)}
    assert left["attention tokens=4 width=16"] < left["noise σ=0.1"] < left["wire bits=8"]
    assert any(isinstance(part, Picture) for part in page.parts)


def test_the_equations_are_those_of_the_run():
    (story,) = tell([rich_result(defence=SLOT)])
    (page,) = equations(story)
    formulas = [part.paragraphs[0] for part in page.parts if isinstance(part, Text) and part.formula]
    assert any("ε ~ N(0, I)" in formula for formula in formulas) and any("w_k" in formula for formula in formulas)
    assert not any("GatedCrossAttention" in formula for formula in formulas)  # that of the other form


def test_what_hides_most_and_keeps_the_task_is_the_hero():
    (story,) = tell(several())
    assert story.hero.name.startswith("attention crossing") and story.hero.seeds == 2
    assert story.bare is not None and story.bare.undefended


def test_defences_are_compared_where_most_of_them_reach():
    (story,) = tell(several())
    best = most_covered(story.curves)
    assert best is not None and 0.84 < best < 0.87
    assert stories(several(), language("en"), at_accuracy=0.8)[0].comparison.accuracy == 0.8


@pytest.mark.parametrize(("low", "high"), [(0.605, 0.732), (0, 0.06), (1, 60), (-3, 2), (0.5, 0.5), (0, 0)])
def test_a_scale_holds_all_and_reads_well(low, high):
    start, end, step = scale(low, high)
    assert start <= low and high <= end and 1 <= round((end - start) / step) <= 7
    assert f"{step:.1e}"[0] in "125"


def test_the_command_writes_the_file(tmp_path, capsys):
    pytest.importorskip("pptx")
    for place, run in enumerate(several(1)[:2]):
        run.save(tmp_path / f"run{place}")
    assert main(["slides", str(tmp_path), "--lang", "zh", "--out", str(tmp_path / "talk.pptx")]) == 0
    assert "talk.pptx" in capsys.readouterr().out and (tmp_path / "talk.pptx").exists()
    assert main(["slides", str(tmp_path), "--lang", "xx"]) == 2


def test_an_extra_that_is_missing_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pptx", None)
    with pytest.raises(ValueError, match=r"pip install 'attcem\[talk\]'"):
        write_slides([make_result()], tmp_path / "talk.pptx")


def test_another_kind_of_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"ends in \.pptx"):
        write_slides([make_result()], tmp_path / "talk.pdf")


def test_every_kind_that_can_be_missing_says_why():
    always = {"title", "method", "equations", "numbers"}
    assert {name for name, kind in SLIDES.items() if not kind.missing} == always
