"""Chinese pages follow the English ones: the same structure, and a mark of the text that was translated.

python -m tests.docs.translations              # after re-reading every Chinese page that is behind
python -m tests.docs.translations tuning.md    # only this one
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from os.path import relpath
from pathlib import Path

from tests.docs.pages import ROOT, read

MARK = re.compile(r"\A<!-- translates .*? -->\n")
RENEW = "python -m tests.docs.translations"


def translations() -> dict[Path, Path]:
    """Chinese page → its English original."""
    found = {path: ROOT / "docs" / path.name for path in sorted((ROOT / "docs" / "zh").glob("*.md"))}
    return {ROOT / "README.zh-CN.md": ROOT / "README.md"} | found


def mark(chinese: Path, english: Path) -> str:
    """The first line of a Chinese page that is up to date: it changes whenever the English page does."""
    digest = hashlib.sha256(english.read_bytes()).hexdigest()[:16]
    return f"<!-- translates {relpath(english, chinese.parent)} sha256:{digest} -->\n"


def behind(chinese: Path, english: Path) -> bool:
    """Whether the English page has changed since it was translated."""
    return not chinese.read_text().startswith(mark(chinese, english))


def renew(chinese: Path, english: Path) -> None:
    """Mark a Chinese page as following the English one as it is now."""
    chinese.write_text(mark(chinese, english) + MARK.sub("", chinese.read_text()))


def targets(path: Path) -> Counter[str]:
    """Where links lead, a page and its translation being one; headings have other anchors in other languages."""
    originals = {str(chinese): str(english) for chinese, english in translations().items()}
    found: Counter[str] = Counter()
    for link in read(path).links:
        name, _, anchor = link.partition("#")
        target = link if ":" in link else str((path.parent / name).resolve()) if name else str(path)
        found[originals.get(target, target) + "#" * bool(anchor)] += 1
    return found


def differences(chinese: Path, english: Path) -> list[str]:
    """What the two pages do not have in common and should."""
    ours, theirs = read(chinese), read(english)
    pairs = {
        "levels of headings": ([level for level, _ in ours.headings], [level for level, _ in theirs.headings]),
        "code blocks": (ours.fences, theirs.fences),
        "lines of equations": ([len(lines) for lines in ours.equations], [len(lines) for lines in theirs.equations]),
        "cells of tables": (ours.tables, theirs.tables),
        "links": (targets(chinese), targets(english)),
        "numbers": (ours.numbers, theirs.numbers),
    }
    return [f"{name}: {first_difference(here, there)}" for name, (here, there) in pairs.items() if here != there]


def first_difference(here: list | Counter, there: list | Counter) -> str:
    """In words."""
    if isinstance(here, Counter) and isinstance(there, Counter):
        return f"only in Chinese {dict(here - there)}, only in English {dict(there - here)}"
    for number, (one, other) in enumerate(zip(here, there, strict=False)):
        if one != other:
            return f"number {number + 1} is {one!r} in Chinese, {other!r} in English"
    return f"{len(here)} in Chinese, {len(there)} in English"


def main(names: list[str]) -> None:
    """Renew the marks of the named pages, or of all that are behind."""
    for chinese, english in translations().items():
        if behind(chinese, english) and (not names or chinese.name in names):
            renew(chinese, english)
            print(f"{chinese.relative_to(ROOT)} now follows {english.relative_to(ROOT)}")


if __name__ == "__main__":
    main(sys.argv[1:])
