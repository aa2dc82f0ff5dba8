"""A Markdown page as the checks see it: headings with their anchors, code, tables, links, numbers."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def pages() -> list[Path]:
    """Everything that is written for people: what lies beside README, the docs, their translations."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


@dataclass
class Page:
    """What a page is made of."""

    headings: list[tuple[int, str]] = field(default_factory=list)
    fences: list[tuple[str, str]] = field(default_factory=list)
    """Language → code, of every fenced block."""
    equations: list[list[str]] = field(default_factory=list)
    """Lines of every indented block."""
    tables: list[list[int]] = field(default_factory=list)
    """Cells of every row, of every table."""
    links: list[str] = field(default_factory=list)
    numbers: Counter[str] = field(default_factory=Counter)

    @property
    def anchors(self) -> set[str]:
        """What a link may name after `#`: GitHub's rule."""
        seen: Counter[str] = Counter()
        found = set()
        for _, title in self.headings:
            slug = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
            found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
            seen[slug] += 1
        return found


def plain(token: Token) -> str:
    """The text of an inline token without its markup."""
    return "".join(child.content for child in token.children or [] if child.type in ("text", "code_inline"))


@cache
def read(path: Path) -> Page:
    """Take a page apart."""
    page = Page()
    tokens = MarkdownIt("commonmark").enable("table").parse(path.read_text())
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type == "fence":
            page.fences.append((token.info, token.content))
        elif token.type == "code_block":
            page.equations.append(token.content.splitlines())
            page.numbers.update(NUMBER.findall(token.content))
        elif token.type == "table_open":
            page.tables.append([])
        elif token.type == "tr_open":
            page.tables[-1].append(0)
        elif token.type in ("td_open", "th_open"):
            page.tables[-1][-1] += 1
        elif token.type == "inline":
            children = token.children or []
            if before is not None and before.type == "heading_open":
                page.headings.append((int(before.tag[1]), plain(token)))
            page.links += [str(child.attrs["href"]) for child in children if child.type == "link_open"]
            page.links += [str(child.attrs["src"]) for child in children if child.type == "image"]
            page.numbers.update(NUMBER.findall(plain(token)))
    return page


def code(path: Path, language: str) -> list[str]:
    """The fenced blocks of one language."""
    return [content for info, content in read(path).fences if info == language]
