"""What a command prints stands on a page between `<!-- $ attcem … -->` and `<!-- end -->`; figures lie beside it.

python -m tests.docs.printed        # writes all of it anew from results/; the rest of a page is kept
"""

from __future__ import annotations

import io
import re
import shlex
from contextlib import chdir, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from attcem.cli import main
from tests.docs.pages import ROOT, pages

BLOCK = re.compile(r"(?P<begin><!-- \$ attcem (?P<line>.*?) -->\n).*?(?P<end><!-- end -->)", re.S)
FIGURES = {
    ROOT / "docs" / "images" / "cem-cifar10.png": ("results/cem_cifar10", "tradeoff.png"),
    ROOT / "docs" / "images" / "headline.png": ("results/headline", "tradeoff.png"),
}
"""Picture of a page → the runs it is drawn from, and which of their figures it is."""


def prints(line: str) -> str:
    """What a command prints, told from the repository's root."""
    with chdir(ROOT), redirect_stdout(io.StringIO()) as said:
        if main(shlex.split(line)):
            raise ValueError(f"attcem {line} failed")
    return said.getvalue().strip()


def renew(text: str) -> str:
    """A page whose blocks are what their commands print today."""
    return BLOCK.sub(lambda block: f"{block['begin']}\n{prints(block['line'])}\n\n{block['end']}", text)


def draw(runs: str, name: str) -> bytes:
    """One of the figures of these runs."""
    with TemporaryDirectory() as folder:
        prints(f"figures {runs} --format png --out {folder}")
        return (Path(folder) / name).read_bytes()


if __name__ == "__main__":
    for page in pages():
        page.write_text(renew(page.read_text()))
    for picture, drawing in FIGURES.items():
        picture.write_bytes(draw(*drawing))
