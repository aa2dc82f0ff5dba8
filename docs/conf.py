"""The site: Sphinx over these Markdown files, without a font or script from elsewhere; `make docs` builds it."""

import sys
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "attcem"
author = "The attcem authors"
project_copyright = "MIT licence"
extensions = ["myst_parser", "reference"]
source_suffix = {".md": "markdown"}
root_doc = "index"
python_maximum_signature_line_length = 110
suppress_warnings = ["ref.python"]  # a name that two modules offer is described in both
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
pygments_style, pygments_dark_style = "tango", "monokai"

html_theme = "furo"
html_title = "attcem"
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"footer_icons": [], "top_of_page_buttons": []}


def adapt(app: Sphinx, page: str, source: list[str]) -> None:
    """Pages link to the log beside README; the navigation may name a page with `?` before it is written."""
    lines = source[0].replace("](../../LOG.md", "](../log.md").replace("](../LOG.md", "](log.md").splitlines()
    if page == root_doc:
        lines = [line.rstrip("?") for line in lines if not line.endswith("?") or (HERE / f"{line[:-1]}.md").exists()]
    source[0] = "\n".join(lines)


def setup(app: Sphinx) -> None:
    """Adapt every page before it is read."""
    app.connect("source-read", adapt)
