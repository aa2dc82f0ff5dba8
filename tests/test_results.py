"""Published runs: complete, readable by every command, and what the pages say of them."""

import re

import pytest

from attcem.compare import compare
from attcem.listing import sweep_paths
from attcem.runs import read_runs
from attcem.sweep.grid import read_sweep
from tests.docs.pages import ROOT, pages
from tests.docs.printed import BLOCK, FIGURES, draw, prints, renew

PUBLISHED = sorted(path for path in (ROOT / "results").iterdir() if path.is_dir())
ABSOLUTE = re.compile(r"(?<![\w./])/\w[^\"\s]*|\b[A-Za-z]:\\\\")
MEGABYTES = 25
WITH_BLOCKS = [page for page in pages() if BLOCK.search(page.read_text())]


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: folder.name)
def test_the_runs_of_a_sweep_are_whole_and_of_one_suite_and_a_page_says_how_many_are_missing(folder):
    """Per-image scores included: a comparison needs them. Pictures are left out, for most data sets do not allow it."""
    results, unread = read_runs([folder])
    assert not unread and all(result.per_image and not result.gallery for result in results)
    runs = {run.name for run in read_sweep(sweep_paths()[folder.name], {})}
    there = {path.name for path in folder.iterdir()}
    assert there <= runs and len({result.suite for result in results}) == 1
    if there < runs:
        assert f"{len(there)} of its {len(runs)} runs" in said_of(folder), "the page must say how much is there"
    middle = sorted(result.accuracy for result in results)[len(results) // 2]
    assert any(row.verdict == "hides more" for row in compare(results, at_accuracy=middle).rows)


def said_of(folder):
    """The pages that print this folder."""
    return "".join(text for text in (page.read_text() for page in WITH_BLOCKS) if f"results/{folder.name}" in text)


def test_they_take_little_room_and_name_no_place_of_a_machine():
    files = [path for path in (ROOT / "results").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MEGABYTES * 2**20
    for path in files:
        assert path.suffix == ".npz" or not ABSOLUTE.findall(path.read_text()), path


@pytest.mark.parametrize("text", ['"/home/someone/data"', '"see /tmp/x.log"', '"C:\\\\data"', '"~/data"'])
def test_an_absolute_path_would_be_noticed(text):
    assert ABSOLUTE.search(text)
    assert not ABSOLUTE.search('"runs/a and/or b, 1 / 2 of https://a.b/c"')


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda page: page.name)
def test_a_page_says_what_its_commands_print(page):
    assert page.read_text() == renew(page.read_text()), "type make results"


@pytest.mark.parametrize("picture", FIGURES, ids=lambda picture: picture.name)
def test_a_figure_is_drawn_from_the_results(picture):
    assert picture.read_bytes() == draw(*FIGURES[picture]), "type make results"


def test_only_what_stands_between_the_marks_is_written():
    page = "Above.\n<!-- $ attcem list recipes -->\nold\n<!-- end -->\nBelow."
    assert renew(page) == f"Above.\n<!-- $ attcem list recipes -->\n\n{prints('list recipes')}\n\n<!-- end -->\nBelow."
    assert renew("No mark.") == "No mark."


def test_a_command_that_fails_is_not_put_on_a_page():
    with pytest.raises(ValueError, match="attcem compare nowhere failed"):
        renew("<!-- $ attcem compare nowhere -->\n<!-- end -->")
