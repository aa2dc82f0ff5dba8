"""A slide that goes on: a table with more lines than one has room for."""

from collections.abc import Sequence
from dataclasses import replace

from attcem.language import Say
from attcem.slides.page import Page, Table


def numbered(say: Say, page: Page, tables: Sequence[Table]) -> list[Page]:
    """The page with each of the tables, and which of several it is."""
    several = len(tables) > 1
    return [
        replace(
            page,
            kicker=say("{kicker}, {place} of {all}", kicker=page.kicker, place=place, all=len(tables))
            if several
            else page.kicker,
            parts=(table, *page.parts),
        )
        for place, table in enumerate(tables, 1)
    ]
