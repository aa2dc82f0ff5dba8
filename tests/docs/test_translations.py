"""The Chinese pages say what the English ones say today, and the check notices when they do not."""

import pytest

from tests.docs import translations as t
from tests.docs.pages import ROOT

PAIRS = t.translations()


@pytest.mark.parametrize("chinese", PAIRS, ids=lambda page: page.name)
def test_a_chinese_page_follows_its_original(chinese):
    english = PAIRS[chinese]
    assert not (found := t.differences(chinese, english)), f"{chinese.name} and {english.name} differ: {found}"
    assert not t.behind(chinese, english), (
        f"{english.relative_to(ROOT)} has changed since {chinese.relative_to(ROOT)} was translated: "
        f"read both, mend the Chinese page, then run `{t.RENEW} {chinese.name}`"
    )


def test_what_the_issue_asks_for_is_translated():
    names = {str(english.relative_to(ROOT)) for english in PAIRS.values()}
    assert names >= {"README.md", "docs/tutorial.md", "docs/tuning.md", "docs/theory.md"}


ENGLISH = """\
# Title

Take 12 of [them](other.md#here).

    y = 3x        because

```sh
attcem list
```

| a | b |
|---|---|
| 1 | 2 |
"""
CHINESE = ENGLISH.replace("Title", "标题").replace("Take 12 of", "取 12 个").replace("because", "因为")


@pytest.fixture
def pair(tmp_path):
    def make(chinese: str):
        (tmp_path / "zh").mkdir(exist_ok=True)
        (tmp_path / "page.md").write_text(ENGLISH)
        (tmp_path / "zh" / "page.md").write_text(chinese.replace("](other", "](../other"))
        t.read.cache_clear()
        return tmp_path / "zh" / "page.md", tmp_path / "page.md"

    return make


def test_a_faithful_translation_passes(pair):
    assert t.differences(*pair(CHINESE)) == []


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("# 标题", "## 标题", "levels of headings"),
        ("attcem list", "attcem demo", "code blocks"),
        ("    y = 3x        因为", "    y = 3x\n    因为", "lines of equations"),
        ("| 1 | 2 |", "| 1 | 2 |\n| 1 | 2 |", "cells of tables"),
        ("other.md#here", "another.md#here", "links"),
        ("other.md#here", "other.md", "links"),
        ("取 12 个", "取 13 个", "numbers"),
    ],
)
def test_each_kind_of_drift_is_named(pair, old, new, what):
    assert old in CHINESE
    assert what in " ".join(t.differences(*pair(CHINESE.replace(old, new))))


def test_an_edit_of_the_original_puts_the_translation_behind_until_it_is_renewed(pair):
    chinese, english = pair(CHINESE)
    assert t.behind(chinese, english)
    t.renew(chinese, english)
    assert not t.behind(chinese, english) and chinese.read_text().endswith("| 1 | 2 |\n")
    english.write_text(ENGLISH.replace("Take", "Give"))
    assert t.behind(chinese, english)
    t.renew(chinese, english)
    assert chinese.read_text().count("<!-- translates ../page.md") == 1
