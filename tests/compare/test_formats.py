"""A comparison as text and as tables, its flags first."""

from __future__ import annotations

import csv
import json
import re

from attcem.compare import FORMATS, comparison_tables
from tests.compare.planted import BOUND, made, planted, quickly, row


def test_flags_come_first_and_mark_their_lines():
    runs = planted(0.005)
    runs += [made({"gmm": {"lam": 1}}, 0.7, 0.04, s, flags=("cut short",) * (s > 0)) for s in range(3)]
    found = quickly(runs)
    text = FORMATS["text"](found).splitlines()
    assert text[0] == "flagged: cut short (gmm: 2 of 3 runs)"
    assert [line.flagged for line in found.rows] == [False, False, True]
    assert text[-1].endswith("flagged") and not text[-2].endswith("flagged")
    assert (
        FORMATS["markdown"](found).startswith("flagged: ") and next(iter(json.loads(FORMATS["json"](found)))) == "flags"
    )


def test_a_flag_of_the_undefended_run_marks_every_curve_that_ends_there():
    runs = planted(0.005)
    runs[0].flags = ["too weak to judge by"]
    found = quickly(runs)
    assert all(line.flagged for line in found.rows) and found.flags == (
        "too weak to judge by (no defence: 1 of 3 runs)",
    )


def test_text_lines_up_and_says_where_and_against_what():
    text = FORMATS["text"](quickly(planted(0.005))).splitlines()
    assert text[0].startswith("worst-case MSE at accuracy 0.8000, the highest accuracy that every defence reaches")
    assert "difference from noise" in text[1] and "1 comparison" in text[1] and "0.6000–0.9000" in text[2]
    heading, reference, ours = text[-3:]
    assert heading.index("verdict") == reference.index("reference") == ours.index("hides more")
    assert "+0.00500" in ours and "<0.001" in ours


def test_a_score_stands_beside_itself_over_the_mean_image():
    """Which has .08 and 20 dB here."""
    runs = planted(0.005)
    heading, reference, ours = (line.split("  ") for line in FORMATS["text"](quickly(runs)).splitlines()[-3:])
    assert [cell for cell in heading if cell][5].strip() == "MSE ratio"
    assert "0.375" in reference and "0.438" in ours, "0.03 and 0.035 over 0.08"
    decibels = FORMATS["text"](quickly(runs, metric="psnr"))
    assert "PSNR gain: over the mean image, a free guess with 20.00; 0 is no better" in decibels
    assert f"{row(quickly(runs, metric='psnr'), BOUND).mean - 20:+.2f}" in decibels
    assert "mean image" not in FORMATS["text"](quickly(runs, metric="ssim"))
    for run in runs:
        run.baselines = {}
    assert "MSE ratio" not in FORMATS["latex"](quickly(runs)) and '"free": null' in FORMATS["json"](quickly(runs))


def test_markdown_csv_and_json_hold_the_same_numbers():
    found = quickly([*planted(0.005), *(made({"gmm": {"lam": 1}}, 0.85, 0.03, s) for s in range(3))], at_accuracy=0.65)
    table = [line for line in FORMATS["markdown"](found).splitlines() if line.startswith("|")]
    assert len(table) == 5 and len({line.count("|") for line in table}) == 1
    records = list(csv.DictReader(FORMATS["csv"](found).splitlines()))
    data = json.loads(FORMATS["json"](found))
    assert [record["defence"] for record in records] == [entry["defence"] for entry in data["rows"]]
    assert float(records[1]["difference"]) == data["rows"][1]["difference"] == row(found, BOUND).difference
    assert records[2]["mean"] == "" and data["rows"][2]["mean"] is None
    assert data["accuracy"] == 0.65 and records[0]["metric"] == "mse" and records[0]["reference"] == "noise"


def test_latex_is_a_whole_table_with_the_flags_above():
    runs = planted(0.005)
    runs[0].flags = ["50 % of it\nis a_b"]
    found = quickly(runs)
    lines = FORMATS["latex"](found).splitlines()
    assert lines[0] == "% flagged: 50 % of it is a_b (no defence: 1 of 3 runs)"
    table = [line for line in lines if not line.startswith("%")]
    columns = re.fullmatch(r"\\begin\{tabular\}\{(l[lr]*)\}", table[0])
    assert (
        columns and table[1::2][:2] == [r"\toprule", r"\midrule"] and table[-2:] == [r"\bottomrule", r"\end{tabular}"]
    )
    written = [line for line in table if line.endswith(r" \\")]
    assert len(written) == 1 + len(found.rows)
    assert all(len(re.split(r"(?<!\\)&", line)) == len(columns[1]) for line in written)
    assert all(len(re.findall(r"(?<!\\)\$", line)) % 2 == 0 and line.isascii() for line in written)
    assert r"noise + bound" in written[2] and "+0.00500" in written[2] and "$<$0.001" in written[2]


HOSTILE = '=cmd("x")|a\n<img src=x onerror=alert(1)> [b](javascript:c) \x1b[2J'
FORMULA = "-1+cmd|' /C calc'!A0"


def test_hostile_names_are_text_in_every_format():
    runs = planted(0.005)
    for run in runs:
        run.config["name"] = HOSTILE if "bound" in run.config["defence"] else FORMULA
    runs[0].flags = [HOSTILE]
    found = quickly(runs, against=HOSTILE)
    assert [line.defence for line in found.rows] == [FORMULA, HOSTILE]

    *opening, table = FORMATS["markdown"](found).split("\n\n")
    assert len(opening) == 5 and not re.search(r"<|(?<!\\)\[", "".join(opening) + table)
    assert {line.count("|") for line in table.splitlines()} == {13} and len(table.splitlines()) == 4

    noise, bound = csv.DictReader(FORMATS["csv"](found).splitlines(keepends=True))
    assert noise["defence"] == "'" + FORMULA
    assert bound["defence"] == bound["reference"] == "'" + " ".join(HOSTILE.split())
    assert float(noise["difference"]) < 0

    text = FORMATS["text"](found).splitlines()
    assert len(text) == 5 + 1 + 3 and all(map(str.isprintable, text))


def test_a_page_gets_a_table_per_question_whose_lines_know_their_runs():
    runs = planted(0.005, seeds=2)
    other = made({}, 0.9, 0.02, data={"name": "cifar10", "seed": 0})
    ours, alone = comparison_tables([other, *runs], draws=400)[::-1]
    assert [line.cells[0] for line in ours.lines] == ["noise", BOUND]
    assert all("bound" in runs[place - 1].config["defence"] for place in ours.lines[1].runs)
    assert len(ours.lines[1].runs) == 6 and len(ours.heading) == len(ours.lines[0].cells)
    assert "hides more" in ours.lines[1].cells[-1]
    assert "cifar10" in alone.title and not alone.lines and "needs two defences" in alone.notes[0]
