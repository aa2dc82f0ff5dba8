"""The file: a white presentation in which every part of a page is a native object."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from attcem.slides import page as at
from attcem.slides.fit import fitted
from attcem.slides.page import ACCENT, SMALLEST, SOFT, Box, Page, Text
from attcem.slides.paint import PAINT, write

FONTS = {"latin": "Arial", "ea": "Microsoft YaHei"}
TITLE_ONLY = 5  # of the layouts that an empty presentation has
THEME = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/theme"


def encode(pages: Iterable[Page], foot: str, language: str) -> bytes:
    """The presentation as a file's content."""
    try:
        from pptx import Presentation
    except ImportError:
        raise ValueError("slides need python-pptx: pip install 'attcem[talk]'") from None
    from pptx.util import Inches

    deck = Presentation()
    deck.slide_width, deck.slide_height = Inches(at.WIDE), Inches(at.HIGH)
    prepare(deck)
    for page in pages:
        slide = deck.slides.add_slide(deck.slide_layouts[TITLE_ONLY])
        where, kicked, size = (at.OPENING_TITLE, at.OPENING_KICKER, 40) if page.opening else (at.TITLE, at.KICKER, 28)
        write(slide.shapes.title, fitted(Text(where, (page.title,), size, bold=True)), language)
        kicker = Text(kicked, (page.kicker,), SMALLEST, ACCENT, bold=True)
        for part in (kicker, *page.parts, Text(at.FOOT, (foot,), SMALLEST, SOFT)):
            PAINT[type(part)](slide.shapes, part, language)
        number(slide.shapes, language)
        slide.notes_slide.notes_text_frame.text = page.notes
    file = io.BytesIO()
    deck.save(file)
    return file.getvalue()


def prepare(deck: Any) -> None:
    """Fonts, and a title where ours stands, so that slides which are added by hand look alike."""
    from lxml import etree
    from pptx.util import Inches

    part = deck.slide_master.part.part_related_by(THEME)
    theme = etree.fromstring(part.blob)
    for script, face in FONTS.items():
        for found in theme.iterfind(f".//{{*}}fontScheme/*/{{*}}{script}"):
            found.set("typeface", face)
    part._blob = etree.tostring(theme, xml_declaration=True, encoding="UTF-8", standalone=True)
    for shape in list(deck.slide_layouts[TITLE_ONLY].placeholders):
        if shape.placeholder_format.idx == 0:
            shape.left, shape.top, shape.width, shape.height = map(Inches, at.TITLE)
        else:
            shape._element.getparent().remove(shape._element)


def number(shapes: Any, language: str) -> None:
    """The slide's number, which follows when slides are moved."""
    from pptx.oxml import parse_xml
    from pptx.util import Inches

    left, top, width, height = at.FOOT
    box = Box(left + width - 1, top, 1, height)
    shape = shapes.add_textbox(*map(Inches, box))
    write(shape, Text(box, ("",), SMALLEST, SOFT, align="right"), language)
    paragraph = shape.text_frame.paragraphs[0]._p
    run = paragraph.r_lst[0]
    field = parse_xml(
        '<a:fld xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
        ' id="{5B1F3C6E-0F5C-4D57-9C9A-6A0B5F0C7A11}" type="slidenum"><a:t>‹#›</a:t></a:fld>'
    )
    field.insert(0, run.rPr)
    run.addprevious(field)
    paragraph.remove(run)
