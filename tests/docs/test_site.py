"""The site builds without a warning, needs nothing from elsewhere, and its search finds things."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["'](https?:)?//|<link\b[^>]*\bhref=["'](https?:)?//"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = ["-m", "sphinx", "-q", "-W", "--keep-going", "-d", folder / "read", ROOT / "docs", folder / "html"]
    built = subprocess.run(
        [sys.executable, *command], env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True
    )
    assert built.returncode == 0, f"make docs would fail:\n{built.stderr}"
    return folder / "html"


def test_every_page_is_there_and_in_the_navigation(site):
    index = (site / "index.html").read_text()
    sidebar = index[index.index('class="sidebar-tree"') :]
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        assert (site / name).stat().st_size > 2_000
        assert f'href="{name}"' in sidebar or page.stem == "index"


def test_nothing_is_loaded_from_elsewhere(site):
    for page in site.rglob("*.html"):
        assert not LOADED.search(page.read_text()), f"{page.name} loads something from elsewhere"
    for style in site.rglob("*.css"):
        assert not re.search(r"(@import\s+|url\()[\"']?(https?:)?//", style.read_text())


def test_loading_from_elsewhere_would_be_noticed():
    assert LOADED.search('<script async src="https://x.org/a.js">') and LOADED.search('<link href="//x.org/a.css">')
    assert not LOADED.search('<script src="_static/a.js"></script><a href="https://x.org">')


def test_the_reference_comes_from_docstrings(site):
    page = (site / "api.html").read_text()
    assert "defences add up" not in page and "Cut a network in two" in page
    for name in ("attcem.split", "attcem.config.TrainConfig", "attcem.maths.rate_bound", "attcem.audit"):
        assert f'id="{name}"' in page
    assert "Passes over the private images" in page


def test_search_knows_pages_and_functions(site):
    index = (site / "searchindex.js").read_text()
    assert "sweeps" in index or "shut" in index
    assert "rate_bound" in index and "tutorial" in index
