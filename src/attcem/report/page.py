"""Put the page together: one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from attcem.files import write_atomically
from attcem.report import clients, explained, figures, gallery, tables, verdict
from attcem.report.numbers import MISSING, is_number
from attcem.report.settings import Setting, section, settings_of
from attcem.types import Result

OPEN, OPEN_CURVES = 8, 4
"""Beyond so many judgements, or rows of curves, the rest is folded away."""

KNEW = {
    "black_box": "Neither the device to query nor the encoder’s weights.",
    "query": "Also the device as a black box to query with any image; not the encoder’s weights.",
    "white_box": "Also the device to query with any image, its encoder’s weights and gradients, and its release.",
}
"""Threat model → what it adds to public images, released latents and the cloud half."""


def write_report(results: Sequence[Result], path: str | Path) -> Path:
    """Write the report of these results as one HTML file that asks nothing of the network."""
    if not results:
        raise ValueError("no results to report: make one with `attcem run experiments/<name>.yaml`")
    return write_atomically(Path(path), render(results).encode())


def render(results: Sequence[Result]) -> str:
    """The page as text."""
    house = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    house.filters["as_yaml"] = as_yaml
    settings = settings_of(results)
    return house.get_template("page.html").render(**contents(results, settings))


def contents(results: Sequence[Result], settings: Sequence[Setting]) -> dict[str, Any]:
    """Everything the template shows."""
    said = verdict.verdicts(settings)
    members = {v.place: [setting for setting in settings if setting.place == v.place] for v in said}
    runs = [(setting, run) for setting in settings for run in setting.runs]
    return {
        "runs": len(results),
        "flag_line": verdict.flag_line(results),
        "flags": [(setting.label(run), run.flags) for setting, run in runs if run.flags],
        "knew": {threat: KNEW[threat] for threat in dict.fromkeys(run.threat for run in results) if threat in KNEW},
        "verdicts": said,
        "open": OPEN,
        "open_curves": OPEN_CURVES,
        "galleries": gallery.galleries(settings),
        "columns": tables.COLUMNS,
        "blocks": tables.run_table(settings),
        "metrics": list(tables.METRICS),
        "attack_tables": [(setting.label(run), setting.place, tables.attack_table(run)) for setting, run in runs],
        "client_columns": list(clients.COLUMNS),
        "client_tables": [
            (setting.label(run), setting.place, clients.client_table(run)) for setting, run in runs if run.clients
        ],
        "charts": [
            (v.place, chart)
            for v in said
            for chart in (figures.tradeoff_chart(v, members[v.place]), figures.spread_chart(members[v.place]))
            if chart
        ],
        "curves": figures.training_curves(settings),
        "explained": explained.views(settings),
        "details": [(setting.label(run), setting.place, facts(run)) for setting, run in runs],
    }


def facts(run: Result) -> dict[str, Mapping[str, Any]]:
    """What a reader needs to judge or repeat a run, by heading; empty parts are left out."""
    parts: dict[str, Mapping[str, Any]] = {
        "Config": run.config,
        "Data draw": section(run.config, "data"),
        "Cost": run.cost,
        "Bounds": run.bounds,
        "Probes": run.probes,
        "Curves": run.curves,
        "Risk": run.risk,
        "Skipped attacks": run.skipped,
        "Per class": run.per_class,
        "Made with": run.versions | ({"commit": run.commit} if run.commit else {}) | {"schema": run.schema},
    }
    return {heading: part for heading, part in parts.items() if part}


def as_yaml(value: Any, depth: int = 0) -> str:
    """A nested mapping as indented lines, numbers shortened.

    >>> print(as_yaml({"model": {"cut": 4, "bottleneck": None}, "sizes": [1, 2]}))
    model:
      cut: 4
      bottleneck: null
    sizes: [1, 2]
    """
    lines = []
    for key, inner in value.items():
        if isinstance(inner, Mapping) and inner:
            lines += [f"{'  ' * depth}{key}:", as_yaml(inner, depth + 1)]
        else:
            lines.append(f"{'  ' * depth}{key}: {_scalar(inner)}")
    return "\n".join(lines)


def _scalar(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_scalar, value))}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        return f"{value:.6g}" if is_number(value) else MISSING
    return str(value)
