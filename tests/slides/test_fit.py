"""Room is guessed from above: as wide as the common fonts are, and never too small a box."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.slides.fit import fitted, height_of, lines_of, tables, width_of
from attcem.slides.page import SMALLEST, Box, Text

SAID = "Without a defence, the cloud recovers 87 % of the picture; noise σ=0.1 + gmm λ=10 lowers that (MSE 0.0278)."


@pytest.mark.parametrize("face", ["phvr8a", "phvb8a"])
def test_a_line_is_no_longer_than_guessed(face):
    matplotlib = pytest.importorskip("matplotlib")
    file = (
        Path(matplotlib.get_data_path()) / "fonts" / "afm" / f"{face}.afm"
    )  # Helvetica, of which Arial has the widths
    rows = [line.split() for line in file.read_text(errors="replace").splitlines() if line.startswith("C ")]
    widths = {chr(int(row[1])): float(row[4]) / 1000 for row in rows if int(row[1]) > 0}
    known = "".join(letter for letter in SAID if letter in widths)
    real = sum(widths[letter] for letter in known) * 20 / 72
    assert real <= width_of(known, 20, bold=face == "phvb8a") <= 1.35 * real


@settings(max_examples=40)
@given(st.text("ab c潜变量，.", min_size=1, max_size=200), st.floats(0.5, 5), st.floats(0.3, 3))
def test_fitted_text_fits_and_keeps_what_it_can(words, width, height):
    box = Box(0, 0, width, height)
    text = Text(box, (words,), 30)
    if height_of(("x…",), width, SMALLEST) > height:
        return
    found = fitted(text)
    assert height_of(found.paragraphs, width, found.size) <= height
    if height_of((words,), width, SMALLEST) <= height:
        assert found.paragraphs == (words,)
    else:
        assert found.paragraphs[-1].endswith("…")


def test_chinese_breaks_anywhere_and_words_do_not():
    assert lines_of("潜变量潜变量", 3.01 * 20 / 72, 20) == 2
    assert lines_of("unbreakable words", width_of("unbreakable", 20) + 0.01, 20) == 2


@settings(max_examples=20)
@given(st.integers(1, 40), st.integers(1, 40))
def test_a_long_table_goes_on_with_every_line_once(count, letters):
    box = Box(0, 0, 8, 3)
    lines = [[f"{place}" + "x" * letters, "0.123 ± 0.004"] for place in range(count)]
    found = tables(box, ["setting", "MSE"], lines, strong=[0])
    assert [list(line) for table in found for line in table.lines] == lines
    assert found[0].strong == {0} and all(not table.strong for table in found[1:])
    assert all(table.box.height <= 3 and table.box.width <= 8 + 1e-6 and table.size >= SMALLEST for table in found)
