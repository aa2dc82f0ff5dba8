"""Figures as files: there, with their fonts, the same bytes again, and honest about what is missing."""

import os
import re
import subprocess
import sys

import pytest

from attcem.attacks import SUITES
from attcem.cli import main
from attcem.figures import FIGURES, FORMATS, draw_figures
from tests.figures.made import several, whole
from tests.report.made import make_result


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    out = tmp_path_factory.mktemp("figures")
    for number, run in enumerate(several()):
        run.save(out / "runs" / str(number))
    assert main(["figures", str(out / "runs"), "--out", str(out / "drawn")]) == 0
    return out


def test_one_command_draws_every_figure_in_both_formats(drawn):
    found = {path.name for path in (drawn / "drawn").iterdir()}
    assert found == {f"{name}.{form}" for name in FIGURES for form in FORMATS}


def test_a_pdf_embeds_truetype_fonts_fits_a_page_and_holds_no_date(drawn):
    for path in (drawn / "drawn").glob("*.pdf"):
        content = path.read_bytes()
        assert b"/FontFile2" in content and b"/Type3" not in content, path.name
        assert b"Date" not in content and b"matplotlib" not in content.lower(), path.name
        (width, height), *_ = re.findall(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+) ?\]", content)
        assert float(width) <= 7.01 * 72 and float(height) <= 9.01 * 72, path.name


LATER = "import sys, attcem.cli, attcem.figures; assert 'matplotlib' not in sys.modules; sys.exit(attcem.cli.main())"


@pytest.mark.slow
def test_another_process_writes_the_same_bytes_and_imports_matplotlib_only_to_draw(drawn):
    line = ["figures", str(drawn / "runs"), "--out", str(drawn / "again")]
    where = os.environ | {"PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "1", "TZ": "Asia/Tokyo"}
    subprocess.run([sys.executable, "-c", LATER, *line], check=True, env=where, stdout=subprocess.DEVNULL)
    for path in sorted((drawn / "drawn").iterdir()):
        assert path.read_bytes() == (drawn / "again" / path.name).read_bytes(), path.name


def test_one_run_with_nothing_recorded_has_a_trade_off_and_says_what_is_missing(tmp_path):
    run = make_result(pictures=0, epochs=0, flags=("too weak",))
    run.baselines = {}
    written = draw_figures([run], tmp_path, ["pdf"])
    assert [path.name for path in written.files] == ["tradeoff.pdf"] and written.files[0].exists()
    for name in FIGURES:
        assert name == "tradeoff" or any(note.startswith(f"no {name}: ") for note in written.notes)
    assert "flagged: 1 of 1 runs, see attcem report" in written.notes
    *some, last = (name for name, suite in SUITES.items() if suite.theory)
    assert any(note.endswith(f"the suite {', '.join(some)} or {last}") for note in written.notes)


def test_odd_names_are_drawn_as_they_are_and_stay_inside_the_folder(tmp_path):
    odd = whole({"_odd $x_1$ {\\": {"lam": 1.0}}, 0.02, 0.8, data={"name": "npz:/../../etc/$x"})
    odd.per_class = {"$\\frac$": {"mse": 0.1}, "_hidden\nclass " * 9: {"mse": 0.2}, "": {"mse": 0.3}}
    written = draw_figures([odd, make_result(pictures=0, epochs=0)], tmp_path / "out", ["png"])
    assert len(written.files) == len(FIGURES) + 1
    assert all(path.parent == tmp_path / "out" and re.fullmatch(r"[\w.-]+", path.name) for path in written.files)


def test_without_matplotlib_the_error_says_what_to_install(drawn, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["figures", str(drawn / "runs"), "--out", str(drawn / "none")]) == 1
    assert "pip install 'attcem[figures]'" in capsys.readouterr().err
