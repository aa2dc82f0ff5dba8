"""The file, read back: real titles, tables with the numbers of compare, and nothing that overflows or is too small."""

import re
from types import SimpleNamespace

import pytest

pptx = pytest.importorskip("pptx", reason="no python-pptx: pip install 'attcem[talk]'")

from pptx.util import Inches  # noqa: E402

from attcem.compare import compare  # noqa: E402
from attcem.compare.tables import cells, headings  # noqa: E402
from attcem.figures.group import groups_of  # noqa: E402
from attcem.slides import SLIDES, write_slides  # noqa: E402
from attcem.slides.fit import height_of  # noqa: E402
from attcem.slides.page import HIGH, SMALLEST, WIDE  # noqa: E402
from tests.slides.made import several  # noqa: E402

CHINESE = re.compile(r"[\u4e00-\u9fff]")
SENTENCE = re.compile(r"\b[A-Za-z][a-z']+(?: [a-z']+){3,}")  # four words of English in a row


@pytest.fixture(scope="module", params=["en", "zh"])
def talk(request, tmp_path_factory):
    results = several()
    written = write_slides(results, tmp_path_factory.mktemp("talk") / "talk.pptx", request.param)
    deck = pptx.Presentation(written.file)
    return SimpleNamespace(code=request.param, results=results, written=written, slides=list(deck.slides))


def texts(slide) -> list[str]:
    """Everything that can be read on a slide, and beside it."""
    found = [shape.text_frame.text for shape in slide.shapes if shape.has_text_frame]
    for shape in slide.shapes:
        if shape.has_table:
            found += [cell.text for row in shape.table.rows for cell in row.cells]
        if shape.has_chart:
            chart = shape.chart
            found += [axis.axis_title.text_frame.text for axis in (chart.category_axis, chart.value_axis)]
            found += [series.name for series in chart.plots[0].series]
    return [*found, slide.notes_slide.notes_text_frame.text]


def tables(talk) -> list[list[list[str]]]:
    shapes = [shape for slide in talk.slides for shape in slide.shapes if shape.has_table]
    return [[[cell.text for cell in row.cells] for row in shape.table.rows] for shape in shapes]


def test_every_kind_of_slide_is_there_and_says_something_of_its_own(talk):
    titles = [slide.shapes.title.text for slide in talk.slides]
    assert talk.written.notes == [] and len(titles) == talk.written.slides >= len(SLIDES)
    assert all(len(title) > 8 for title in titles) and len(set(titles)) == len(titles)
    assert all(slide.notes_slide.notes_text_frame.text for slide in talk.slides)


def test_the_matched_table_is_what_compare_says(talk):
    comparison = compare(talk.results)
    shown = next(table for table in tables(talk) if len(table[0]) == 8)
    names = headings(comparison)
    wanted = [names.index(name) for name in ("seeds", "MSE", "MSE ratio", "difference", "95 % interval", "p")]
    for line, row in zip(shown[1:], comparison.rows, strict=True):
        found = cells(row, comparison)
        assert line[1:-1] == [found[place] for place in wanted]
        assert (line[-1] == row.verdict) == (talk.code == "en")


def test_the_chart_shows_the_means_over_seeds(talk):
    (group,) = groups_of(talk.results)
    charts = [shape.chart for slide in talk.slides for shape in slide.shapes if shape.has_chart]
    drawn = {series.name: list(series.values) for series in charts[0].plots[0].series}
    for one in group.defences:
        assert drawn[one.name] == pytest.approx([setting.accuracy for setting in one.settings])


def test_text_fits_its_box_and_every_box_the_slide(talk):
    wide, high = Inches(WIDE), Inches(HIGH)
    for slide in talk.slides:
        for shape in slide.shapes:
            assert shape.left >= 0 and shape.left + shape.width <= wide, shape.name
            assert shape.top >= 0 and shape.top + shape.height <= high, shape.name
            frame = shape.text_frame if shape.has_text_frame else None
            if frame and any(paragraph.runs for paragraph in frame.paragraphs):
                (size,) = {run.font.size.pt for paragraph in frame.paragraphs for run in paragraph.runs}
                bold = frame.paragraphs[0].runs[0].font.bold
                words = [paragraph.text for paragraph in frame.paragraphs]
                assert height_of(words, shape.width / Inches(1), size, bold=bold) <= shape.height / Inches(1) + 1e-4
                assert not words[-1].endswith("…"), words


def test_nothing_is_smaller_than_can_be_read_from_the_back(talk):
    for slide in talk.slides:
        for shape in slide.shapes:
            frames = [shape.text_frame] if shape.has_text_frame else []
            frames += [cell.text_frame for row in shape.table.rows for cell in row.cells] if shape.has_table else []
            runs = [run for frame in frames for paragraph in frame.paragraphs for run in paragraph.runs]
            assert all(run.font.size.pt >= SMALLEST for run in runs)
            assert not shape.has_chart or shape.chart.font.size.pt >= SMALLEST


def test_a_slide_in_chinese_holds_no_english_sentence(talk):
    found = [text for slide in talk.slides for text in texts(slide)]
    english = [text for text in found if SENTENCE.search(text)]
    if talk.code == "zh":
        assert not english
        assert all(CHINESE.search(slide.shapes.title.text) for slide in talk.slides)
    else:
        assert english and not any(map(CHINESE.search, found))
