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
IMPORTED = re.compile(r"""(@import\s+|url\()["']?(https?:)?//""")


@pytest.mark.slow
def test_the_site_is_whole_and_stands_alone(tmp_path):
    """One test, so that one process builds it once."""
    command = ["-m", "sphinx", "-q", "-W", "--keep-going", "-d", tmp_path / "read", ROOT / "docs", tmp_path / "site"]
    built = subprocess.run(
        [sys.executable, *command], env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True
    )
    assert built.returncode == 0, f"make docs would fail:\n{built.stderr}"
    every_page_is_in_the_navigation(tmp_path / "site")
    nothing_is_loaded_from_elsewhere(tmp_path / "site")
    the_reference_comes_from_docstrings((tmp_path / "site" / "api.html").read_text())
    assert all(word in (tmp_path / "site" / "searchindex.js").read_text() for word in ("hadamard", "rate_bound", "zh/"))


def every_page_is_in_the_navigation(site: Path) -> None:
    index = (site / "index.html").read_text()
    sidebar = index[index.index('class="sidebar-tree"') :]
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        assert (site / name).stat().st_size > 2_000
        assert f'href="{name.as_posix()}"' in sidebar or page.stem == "index", (
            f"docs/index.md does not list {page.name}"
        )


def nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not LOADED.search(page.read_text()), f"{page.name} loads something from elsewhere"
    for style in site.rglob("*.css"):
        assert not IMPORTED.search(style.read_text()), f"{style.name} loads something from elsewhere"


def the_reference_comes_from_docstrings(page: str) -> None:
    for name in ("attcem.split", "attcem.config.TrainConfig", "attcem.maths.rate_bound", "attcem.audit"):
        assert f'id="{name}"' in page
    assert "Cut a network in two" in page and "Passes over the private images" in page


def test_loading_from_elsewhere_would_be_noticed():
    assert LOADED.search('<script async src="https://x.org/a.js">') and LOADED.search('<link href="//x.org/a.css">')
    assert not LOADED.search('<script src="_static/a.js"></script><a href="https://x.org">')
    assert IMPORTED.search("src: url(https://x.org/a.woff)") and not IMPORTED.search("url(data:image/svg+xml)")
