"""The page in another language: every word of it, but names that users type."""

import re
from html.parser import HTMLParser

import pytest

from attcem.cli import main
from attcem.compare import comparison_tables
from attcem.language import language
from attcem.report import render
from tests.slides.made import NOISE, several

SENTENCE = re.compile(r"[A-Za-z][a-z']+(?: [a-z']+){3,}")  # four words of English in a row


class Words(HTMLParser):
    """What a page says, to eyes and to those who have it read aloud, but for the configuration of runs."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.inside: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.inside += [tag] if tag in ("script", "style", "pre") else []
        self.found += [value for name, value in attrs if name in ("aria-label", "alt", "title") and value]

    def handle_endtag(self, tag):
        if tag in self.inside:
            self.inside.remove(tag)

    def handle_data(self, data):
        self.found += [] if self.inside else [data]


def said(page: str) -> list[str]:
    words = Words()
    words.feed(page)
    charts = re.search(r'id="chart-data">(.*?)</script>', page, re.DOTALL)
    assert charts
    return [*words.found, *re.findall(r'"(?:text|name|title)":"([^"]*)"', charts[1])]


def english(page: str) -> list[str]:
    return [text for text in said(page) if SENTENCE.search(text)]


@pytest.fixture(scope="module")
def results():
    return [run for run in several(2) if run.config["defence"] in ({}, NOISE)]


def test_a_page_in_chinese_holds_no_english_sentence(results):
    say = language("zh")
    page = render(results, comparison_tables(results, say, draws=50), say)
    assert '<html lang="zh-CN">' in page and "图片有多少到达了云端" in page
    assert english(page) == []
    assert "隐藏更多" in page and "hides more" not in page


def test_a_page_is_english_unless_asked(results):
    page = render(results, comparison_tables(results, draws=50))
    assert '<html lang="en">' in page and len(english(page)) > 20
    assert not [text for text in said(page) if re.search(r"[\u4e00-\u9fff]", text)]


def test_the_command_takes_the_language(tmp_path, results):
    results[0].save(tmp_path / "run")
    assert main(["report", str(tmp_path), "--lang", "zh", "--out", str(tmp_path / "page.html")]) == 0
    assert 'lang="zh-CN"' in (tmp_path / "page.html").read_text()
