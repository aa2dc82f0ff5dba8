"""Links of every page: those inside must lead somewhere, those to elsewhere are only listed.

python -m tests.docs.links     # links to elsewhere, which nobody has followed
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

from tests.docs.pages import ROOT, pages, read

OUTSIDE = re.compile(r"[a-z]+:", re.IGNORECASE)


def broken(path: Path) -> list[str]:
    """Targets of a page that are not there, or have no such heading."""
    found = []
    for link in read(path).links:
        if OUTSIDE.match(link):
            continue
        name, _, anchor = unquote(link).partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists():
            found.append(f"{link} does not exist")
        elif not target.is_relative_to(ROOT):
            found.append(f"{link} leaves the repository")
        elif anchor and anchor not in read(target).anchors:
            found.append(f"{link}: {target.name} has no heading with this anchor, but {sorted(read(target).anchors)}")
    return found


def outside() -> dict[str, list[str]]:
    """Page → its links to elsewhere."""
    found = {
        str(path.relative_to(ROOT)): [link for link in read(path).links if OUTSIDE.match(link)] for path in pages()
    }
    return {page: links for page, links in found.items() if links}


if __name__ == "__main__":
    for page, links in outside().items():
        print(f"{page}: {', '.join(links)}")
    print(f"{sum(map(len, outside().values()))} links to elsewhere, not followed")
