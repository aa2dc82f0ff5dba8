"""`make test` draws the same examples every time, on every machine: no luck, and no memory of earlier runs."""

import re
from pathlib import Path

from hypothesis import settings


def test_the_suite_draws_the_same_examples_every_time():
    suite = settings.get_profile("suite")
    assert settings.default == suite and suite.derandomize and suite.database is None and suite.deadline is None


def test_the_search_draws_new_ones():
    assert not settings.get_profile("search").derandomize


def test_no_test_decides_for_itself_how_it_is_drawn():
    here = Path(__file__)
    own = re.compile(r"^@settings\(.*(derandomize|database|deadline)", re.MULTILINE)
    assert not [path for path in here.parent.rglob("*.py") if own.search(path.read_text())]
