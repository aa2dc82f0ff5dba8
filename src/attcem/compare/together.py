"""Everything on one page: the runs that can be compared, each group in a table of its own."""

from __future__ import annotations

from collections.abc import Sequence

from attcem.compare.comparable import question
from attcem.compare.matched import compare
from attcem.compare.tables import as_table
from attcem.runs.config import grouped
from attcem.types import Result, Table


def comparison_tables(results: Sequence[Result], *, metric: str = "mse", draws: int = 10_000) -> list[Table]:
    """One table per data set, network and audit; where its runs cannot be compared, the reason."""
    groups = grouped(range(len(results)), lambda place: question(results[place]))
    return [_table(results, places, metric, draws) for places in groups]


def _table(results: Sequence[Result], places: Sequence[int], metric: str, draws: int) -> Table:
    runs = [results[place] for place in places]
    asked = question(runs[0])
    suite = asked.get("audit.suite", asked.get("attacks"))
    title = f"{asked.get('data.name', 'data')} · {asked.get('model.backbone', 'model')}, suite {suite}"
    try:
        return as_table(compare(runs, metric=metric, draws=draws), title, places)
    except ValueError as reason:
        return Table(title, (str(reason),))
