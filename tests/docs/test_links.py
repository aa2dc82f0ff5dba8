"""Links inside the repository lead to files and headings that are there."""

import re

import pytest

from tests.docs import links
from tests.docs.pages import ROOT, pages, read


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert links.broken(page) == []


def test_what_the_code_cites_is_there():
    cited = re.compile(r"docs/([\w/-]+\.md)(?:#([\w-]+))?")
    sources = sorted((ROOT / "src").rglob("*.py"))
    found = [(path, *match) for path in sources for match in cited.findall(path.read_text())]
    assert any(anchor for _, _, anchor in found)
    for path, name, anchor in found:
        page = ROOT / "docs" / name
        assert page.is_file() and (not anchor or anchor in read(page).anchors), (path, name, anchor)
    assert not [path for path in sources if re.search(r"maths §|\(§", path.read_text())], "a section by number"


def test_anchors_are_those_of_github(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Your own `npz:` data, now\n\n## 3 steps\n\n## 3 steps\n\n## 注意力：均匀\n")
    assert read(page).anchors == {"your-own-npz-data-now", "3-steps", "3-steps-1", "注意力均匀"}


def test_broken_links_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(links, "ROOT", tmp_path)
    (tmp_path / "there.md").write_text("# Here\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](there.md) [b](there.md#here) [c](gone.md) [d](there.md#gone) [e](#no) ![f](gone.png) [g](https://x.org) "
        "[h](../)\n\n```sh\n[not](a-link.md)\n```\n"
    )
    found = " ".join(links.broken(page))
    assert len(links.broken(page)) == 5
    assert all(name in found for name in ("gone.md", "there.md#gone", "#no", "gone.png", "../"))
