"""How each part of a page becomes an object that whoever gets the slides can edit."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attcem.slides import fit
from attcem.slides.page import INK, PALE, PAPER, RULE, SOFT, Arrow, Block, Box, Picture, Plot, Table, Text
from attcem.slides.plot import draw_plot

LOWER, HIGHER = -25_000, 30_000  # thousandths of a percent of a letter
SCRIPT = re.compile(r"([_^])(\{[^}]*\}|\w+|\*)")


def write(shape: Any, text: Text, language: str) -> None:
    """Put paragraphs into a shape that has room for them."""
    from pptx.dml.color import RGBColor
    from pptx.enum.text import MSO_ANCHOR, MSO_AUTO_SIZE, PP_ALIGN
    from pptx.util import Inches, Pt

    shape.left, shape.top, shape.width, shape.height = map(Inches, text.box)
    frame = shape.text_frame
    frame.word_wrap, frame.auto_size, frame.vertical_anchor = True, MSO_AUTO_SIZE.NONE, MSO_ANCHOR.TOP
    frame.margin_left = frame.margin_right = frame.margin_top = frame.margin_bottom = 0
    for place, words in enumerate(text.paragraphs):
        paragraph = frame.paragraphs[0] if place == 0 else frame.add_paragraph()
        paragraph.alignment = getattr(PP_ALIGN, text.align.upper())
        paragraph.line_spacing = Pt(text.size * fit.LINE)
        paragraph.space_before = Pt(text.size * fit.BETWEEN if place else 0)
        for piece, raised in scripts(words) if text.formula else [(words, 0)]:
            run = paragraph.add_run()
            run.text = piece
            font = run.font
            font.size, font.bold, font.color.rgb = Pt(text.size), text.bold, RGBColor.from_string(text.colour)
            speak(run, language)
            if raised:
                run._r.get_or_add_rPr().set("baseline", str(raised))


def scripts(formula: str) -> Iterator[tuple[str, int]]:
    """The pieces of a formula, and how far each is raised.

    >>> list(scripts("π_k e^{2s}"))
    [('π', 0), ('k', -25000), (' e', 0), ('2s', 30000)]
    """
    done = 0
    for found in SCRIPT.finditer(formula):
        if found.start() > done:
            yield formula[done : found.start()], 0
        yield found[2].strip("{}"), LOWER if found[1] == "_" else HIGHER
        done = found.end()
    if formula[done:]:
        yield formula[done:], 0


def speak(run: Any, language: str) -> None:
    """Tell the program what language to check the spelling of."""
    run._r.get_or_add_rPr().set("lang", {"zh": "zh-CN"}.get(language, "en-GB"))


def draw_text(shapes: Any, text: Text, language: str) -> None:
    from pptx.util import Inches

    write(shapes.add_textbox(*map(Inches, text.box)), fit.fitted(text), language)


def draw_block(shapes: Any, block: Block, language: str) -> None:
    from pptx.dml.color import RGBColor
    from pptx.enum.dml import MSO_LINE
    from pptx.enum.shapes import MSO_SHAPE
    from pptx.enum.text import MSO_ANCHOR
    from pptx.util import Inches, Pt

    shape = shapes.add_shape(MSO_SHAPE.RECTANGLE, *map(Inches, block.box))
    shape._element.remove(shape._element.find("{*}style"))  # which brings a shadow
    shape.fill.solid()
    shape.fill.fore_color.rgb = RGBColor.from_string(block.fill)
    shape.line.color.rgb, shape.line.width = RGBColor.from_string(block.line), Pt(1.5)
    if block.dashed:
        shape.line.dash_style = MSO_LINE.DASH
    if not block.words:
        return
    air = 0.08
    left, top, width, height = block.box
    inside = Box(left + air, top + air, width - 2 * air, height - 2 * air)
    text = fit.fitted(Text(inside, tuple(block.words.split("\n")), block.size, align="center"))
    write(shape, text, language)
    shape.left, shape.top, shape.width, shape.height = map(Inches, block.box)
    frame = shape.text_frame
    frame.margin_left = frame.margin_right = Inches(air)
    frame.vertical_anchor = MSO_ANCHOR.MIDDLE


def draw_arrow(shapes: Any, arrow: Arrow, language: str) -> None:
    from pptx.dml.color import RGBColor
    from pptx.enum.dml import MSO_LINE
    from pptx.enum.shapes import MSO_CONNECTOR
    from pptx.oxml import parse_xml
    from pptx.util import Inches, Pt

    line = shapes.add_connector(MSO_CONNECTOR.STRAIGHT, *map(Inches, (*arrow.start, *arrow.end))).line
    line.color.rgb, line.width = RGBColor.from_string(arrow.colour), Pt(2)
    if arrow.dashed:
        line.dash_style = MSO_LINE.DASH
    head = '<a:tailEnd xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" type="triangle"/>'
    line._get_or_add_ln().append(parse_xml(head))


def draw_picture(shapes: Any, picture: Picture, language: str) -> None:
    from pptx.util import Inches

    drawn = shapes.add_picture(io.BytesIO(picture.png), *map(Inches, picture.box))
    drawn._element.nvPicPr.cNvPr.set("descr", picture.words)


def draw_table(shapes: Any, table: Table, language: str) -> None:
    from pptx.util import Inches

    frame = shapes.add_table(len(table.lines) + 1, len(table.heading), *map(Inches, table.box))
    drawn = frame.table
    drawn.horz_banding = drawn.first_row = False
    for column, width in zip(drawn.columns, table.widths, strict=True):
        column.width = Inches(width)
    for place, cells in enumerate((table.heading, *table.lines)):
        drawn.rows[place].height = Inches(fit.row_height(cells, table.widths, table.size))
        for column, words in enumerate(cells):
            fill_cell(drawn.cell(place, column), words, table, place, column, language)


def fill_cell(cell: Any, words: str, table: Table, place: int, column: int, language: str) -> None:
    from pptx.dml.color import RGBColor
    from pptx.enum.text import MSO_ANCHOR, PP_ALIGN
    from pptx.util import Inches, Pt

    strong = place - 1 in table.strong
    cell.fill.solid()
    cell.fill.fore_color.rgb = RGBColor.from_string(PALE if strong else PAPER)
    cell.margin_left = cell.margin_right = Inches(fit.PADDING)
    cell.margin_top = cell.margin_bottom = Pt(table.size * 0.2)
    cell.vertical_anchor = MSO_ANCHOR.MIDDLE
    paragraph = cell.text_frame.paragraphs[0]
    paragraph.line_spacing = Pt(table.size * fit.LINE)
    paragraph.alignment = (
        PP_ALIGN.RIGHT if column and fit.holds_figures([line[column] for line in table.lines]) else PP_ALIGN.LEFT
    )
    run = paragraph.add_run()
    run.text = words
    font = run.font
    font.size, font.bold = Pt(table.size), place == 0 or strong
    font.color.rgb = RGBColor.from_string(SOFT if place == 0 else INK)
    speak(run, language)
    underline(cell, INK if place == 0 else RULE)


def underline(cell: Any, colour: str) -> None:
    """A thin line below a cell, the only one it has."""
    from pptx.oxml import parse_xml

    space = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    properties = cell._tc.get_or_add_tcPr()
    none = [f'<a:{side} {space} w="0"><a:noFill/></a:{side}>' for side in ("lnL", "lnR", "lnT")]
    fill = f'<a:solidFill><a:srgbClr val="{colour}"/></a:solidFill>'
    lines = [*none, f'<a:lnB {space} w="9525">{fill}</a:lnB>']
    for place, line in enumerate(lines):
        properties.insert(place, parse_xml(line))


PAINT: Mapping[type, Callable[[Any, Any, str], None]] = {
    Text: draw_text,
    Block: draw_block,
    Arrow: draw_arrow,
    Picture: draw_picture,
    Table: draw_table,
    Plot: lambda shapes, plot, language: draw_plot(shapes, plot),
}
