"""Text that nobody vouches for, as a table of any kind may hold it."""

import csv

import pytest

from attcem.escaping import as_csv, in_latex, in_markdown, in_terminal


def test_latex_lets_no_letter_of_a_name_through_as_a_command():
    assert in_latex("a\\b {c} $d$ #1 ~^ [e] <f|g> λ\n\nh %i & _") == (
        r"a\textbackslash{}b \{c\} \$d\$ \#1 \textasciitilde{}\textasciicircum{} {[}e] "
        r"$<$f\textbar{}g$>$ $\lambda$ h \%i \& \_"
    )


def test_markdown_shows_every_letter_as_itself():
    assert in_markdown("*a* `b`\n# c | ![d](e) <f> &amp; \\| ~g~ $h$") == (
        r"\*a\* \`b\` # c &#124; !\[d](e) &lt;f&gt; &amp;amp; \\&#124; \~g\~ \$h\$"
    )


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1+cmd|' /C calc'!A0", "@SUM(1)", "\t=1", "\r=1", " =1"])
def test_csv_holds_no_formula_in_cell_or_heading(text):
    heading, line = csv.reader(as_csv([{text: text}]).splitlines(keepends=True))
    assert heading == line == ["'" + text.strip()]


def test_csv_keeps_a_cell_on_its_line():
    assert as_csv([{"a": "b\r=1+1\n=2"}]).splitlines() == ["a", "b =1+1 =2"]


def test_csv_keeps_numbers_and_harmless_text():
    records = [{"a": -0.5, "b": "noise + bound"}, {"a": 3, "c": -1e-9}, {"b": 'say "x", y', "c": None}]
    found = list(csv.DictReader(as_csv(records).splitlines()))
    assert [row["a"] for row in found] == ["-0.5", "3", ""] and float(found[1]["c"]) == -1e-9
    assert [row["b"] for row in found] == ["noise + bound", "", 'say "x", y'] and found[2]["c"] == ""


def test_a_terminal_gets_no_control_character():
    assert in_terminal("a\x1b]0;title\x07 \u202eb\r\nc — σ é") == r"a\u001b]0;title\u0007 \u202eb\r\nc — σ é"
