"""Put the page together: one self-contained HTML file."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from attcem.files import write_atomically
from attcem.language import ENGLISH, Say, phrase
from attcem.report import gallery, inside, promises, risk, tables, training, verdict
from attcem.report.charts import Chart
from attcem.report.tradeoff import tradeoff
from attcem.runs import settings_of, with_twins
from attcem.runs.numbers import MISSING, is_number, map_numbers
from attcem.runs.settings import places
from attcem.types import Result, Table

HERE = Path(__file__).parent
LIBRARY = HERE / "vendor" / "plotly-cartesian.min.js"
"""plotly.js 4.1.1, the partial bundle with charts on two axes, as published (MIT, its licence beside it)."""


def write_report(
    results: Sequence[Result], path: str | Path, comparisons: Sequence[Table] = (), say: Say = ENGLISH
) -> Path:
    """Write the report of these results as one HTML file that asks nothing of the network."""
    if not results:
        raise ValueError("no results to report: make one with `attcem run experiments/<name>.yaml`")
    return write_atomically(Path(path), render(results, comparisons, say).encode())


def render(results: Sequence[Result], comparisons: Sequence[Table] = (), say: Say = ENGLISH) -> str:
    """The page as text; the runs of a comparison's lines are places in `results`, its words in the same language."""
    house = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined)
    house.trim_blocks = house.lstrip_blocks = True
    drawn: list[Chart] = []

    def placed(chart: Chart) -> int:
        """Note a chart that a template shows: its data follow at the end of the page."""
        drawn.append(chart)
        return len(drawn) - 1

    house.filters |= {"as_yaml": as_yaml, "placed": placed, "again": say.again}
    as_json = partial(json.dumps, separators=(",", ":"), allow_nan=False)
    house.globals |= {
        "say": say,
        "chart_data": lambda: htmlsafe_json_dumps([chart.data() for chart in drawn], dumps=as_json),
        "library": lambda: Markup(LIBRARY.read_text()),
    }
    return house.get_template("page.html").render(**contents(results, comparisons, say))


def contents(results: Sequence[Result], comparisons: Sequence[Table], say: Say) -> dict[str, Any]:
    results = with_twins(results)
    settings = settings_of(results)
    anchors = {id(run): f"run-{place + 1}" for place, run in enumerate(results)}
    members = places(settings)
    return {
        "runs": [(setting, run, anchors[id(run)]) for setting in settings for run in setting.runs],
        "flag_line": verdict.flag_line(results, say),
        "threats": list(dict.fromkeys(run.threat for run in results)),
        "verdicts": [(found, tradeoff(members[found.place], say)) for found in verdict.verdicts(settings, say)],
        "galleries": gallery.galleries(settings, anchors, say),
        "comparisons": comparisons,
        "columns": tables.COLUMNS,
        "blocks": tables.run_table(settings, anchors),
        "risks": [(place, found) for place, inner in members.items() if (found := risk.charts(inner, say))],
        "training": training.training(settings, say),
        "insides": inside.views(settings, say),
        "promised": [(place, promises.tables(inner, say)) for place, inner in members.items()],
        "metrics": list(tables.METRICS),
        "attack_table": tables.attack_table,
        "client_table": partial(tables.client_table, say=say),
        "strips": partial(gallery.strips, say=say),
        "facts": facts,
    }


def facts(run: Result) -> dict[str, Mapping[str, Any]]:
    """What a reader needs to judge or repeat a run, by heading; empty parts are left out."""
    parts: dict[str, Mapping[str, Any]] = {
        phrase("Config"): run.config,
        phrase("Data draw"): run.config.get("data") or {},
        phrase("Cost"): run.cost,
        phrase("Bounds"): run.bounds,
        phrase("Probes"): run.probes,
        phrase("Curves"): run.curves,
        phrase("Risk"): run.risk,
        phrase("Skipped attacks"): run.skipped,
        phrase("Per class"): run.per_class,
        phrase("Made with"): run.versions | ({"commit": run.commit} if run.commit else {}) | {"schema": run.schema},
    }
    return {heading: part for heading, part in parts.items() if part}


def as_yaml(value: Any) -> str:
    """Nested settings as indented lines, numbers with six digits, a dash for what is not finite.

    >>> print(as_yaml({"model": {"cut": 4, "bottleneck": None}, "defence": [{"noise": {"sigma": 0.1}}]}))
    model:
      cut: 4
      bottleneck: null
    defence:
    - noise:
        sigma: 0.1
    """
    short = map_numbers(value, lambda number: float(f"{number:.6g}") if is_number(number) else MISSING)
    return yaml.safe_dump(short, sort_keys=False, allow_unicode=True).rstrip()
