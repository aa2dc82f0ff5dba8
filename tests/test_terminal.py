"""No name of a file, and nothing in one, steers the terminal; every script is shown as it is."""

import io
import json
import os
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attcem import progress
from attcem.cli import main
from attcem.compare import FORMATS
from attcem.escaping import in_terminal
from attcem.terminal import tell
from tests.compare.planted import bound, made, noise
from tests.report.made import make_result

EVIL = "a\x1b[2J\x1b]0;owned\x07\nattcem: all is well\r\x9b31m\u202e名字"
SHOWN = r"a\u001b[2J\u001b]0;owned\u0007\nattcem: all is well\r\u009b31m\u202e名字"


def steers(text: str) -> bool:
    """Whether anything but whole lines would reach the terminal."""
    return any(unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") for letter in text.replace("\n", ""))


SEEN = ["", "plain text", "噪声，防御　二", "naïve café", "Ελληνικά", "हिन्दी", "日本語", "🙂", "± σ", "a\u00a0b"]


@pytest.mark.parametrize("text", SEEN)
def test_what_can_be_seen_stays(text):
    assert in_terminal(text) == text


@given(st.text())
def test_nothing_steers_and_json_stays_what_it_was(text):
    assert not steers(in_terminal(text)) and "\n" not in in_terminal(text)
    assert json.loads(in_terminal(json.dumps(text, ensure_ascii=False))) == text
    assert in_terminal(in_terminal(text)) == in_terminal(text)


def test_every_argument_is_one_line(capsys):
    tell(EVIL, "", "second")
    tell("third", file=sys.stderr)
    assert capsys.readouterr() == (f"{SHOWN}\n\nsecond\n", "third\n")


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_says_it_harmlessly(terminal, monkeypatch):
    written = io.StringIO()
    console = progress.Console(file=written, force_terminal=terminal, highlight=False, width=200, color_system=None)
    monkeypatch.setattr(progress, "console", console)
    with progress.bar(f"{EVIL} [red]", 2) as show:
        show(1)
    assert ("[red]" in written.getvalue()) == terminal and "owned\x07" not in written.getvalue()
    progress.say(f"{EVIL} [red] :warning:")
    assert f"{SHOWN} [red] :warning:\n" in written.getvalue()


@pytest.fixture
def evil(tmp_path):
    """A folder of somebody else, with a run that is damaged and one that is not."""
    folder = tmp_path / EVIL
    make_result().save(folder / "whole")
    make_result(defence={"noise": {"sigma": 0.1}}).save(folder / "damaged")
    (folder / "damaged" / "result.json").write_text("{")
    return folder


@pytest.mark.parametrize(
    "words",
    [
        "compare EVIL",
        "report EVIL --out EVIL/page.html",
        "report EVIL/whole --out EVIL/page.html",
        "report EVIL/nothing",
        "figures EVIL/damaged",
        "run EVIL/damaged --resume",
        "run EVIL/nothing.yaml",
        "audit EVIL/whole",
        "explain EVIL/whole",
        "sweep EVIL/nothing.yaml",
    ],
)
def test_the_name_of_a_folder_reaches_the_terminal_written_out(words, evil, capsys):
    main([word.replace("EVIL", str(evil)) for word in words.split()])
    printed = "".join(capsys.readouterr())
    assert "31m" in printed and "名字" in printed
    assert not steers(printed) and "\nattcem: all is well" not in printed


@pytest.mark.parametrize("form", FORMATS)
def test_what_a_result_says_does_not_steer_either(form, tmp_path, capsys):
    for number, (strength, accuracy) in enumerate(((1, 0.8), (2, 0.7))):
        made(noise(strength), accuracy, 0.03, flags=(EVIL,)).save(tmp_path / f"noise-{number}")
        for assign in (EVIL, "slot"):
            made(bound(strength, assign=assign), accuracy, 0.04).save(tmp_path / f"bound-{number}-{len(assign)}")
    assert main(["compare", str(tmp_path), "--format", form]) == 0
    printed = capsys.readouterr().out
    assert "名字" in printed and not steers(printed)


def test_a_name_that_is_no_text_is_no_traceback(tmp_path, capfd):
    folder = os.fsdecode(os.fsencode(tmp_path / "run") + b"\xff")
    assert main(["report", folder]) == 1
    assert r"run\udcff" in capfd.readouterr().err
