"""Bounds beside measurements, probes beside chance, and what a defence costs, as tables."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attcem.language import ENGLISH, Say, phrase
from attcem.report.charts import Grid
from attcem.report.measures import measures_table
from attcem.runs import Setting
from attcem.runs.numbers import MISSING, Show, count, decibel, is_number, mean, percent, ratio, small
from attcem.runs.settings import most_alike


def tables(settings: Sequence[Setting], say: Say = ENGLISH) -> dict[str, Grid | None]:
    made = {
        "bounds": bounds_table(settings),
        "probes": probes_table(settings),
        "measures": measures_table(settings),
        "pieces": pieces_table(settings),
        "cost": cost_table(settings),
    }
    return {name: table and said(table, say) for name, table in made.items()}


def said(table: Grid, say: Say) -> Grid:
    """The same table in another language."""
    lines = [list(map(say.again, line)) for line in table.lines]
    return Grid(list(map(say, table.heading)), lines, table.words)


def _fano(bounds: Mapping[str, Any]) -> float | None:
    """Re-identification once among 10 000: the most that anyone can reach."""
    table = bounds.get("fano", {})
    rows = zip(table.get("candidates", []), table.get("queries", []), table.get("success", []), strict=False)
    return next((p for n, k, p in rows if (n, k) == (10_000, 1)), None)


BOUNDS: Mapping[str, tuple[Callable[[Mapping[str, Any]], Any], Show]] = {
    phrase("MSE floor, estimate"): (lambda bounds: bounds.get("mse_floor_estimate"), small),
    phrase("Fisher floor, estimate"): (lambda bounds: bounds.get("fisher", {}).get("mse"), small),
    phrase("information, nats at most"): (lambda bounds: bounds.get("rate_nats"), decibel),
    phrase("found among 10\N{NARROW NO-BREAK SPACE}000, at most"): (_fano, ratio),
}


def bounds_table(settings: Sequence[Setting]) -> Grid | None:
    lines = []
    for setting in settings:
        found = [run.bounds for run in setting.runs]
        cells = [show(mean([read(bounds) for bounds in found])) for read, show in BOUNDS.values()]
        why = next((str(bounds["why"]) for bounds in found if bounds.get("why")), None)
        if any(found):
            shown = cells if why is None else [why, *[MISSING] * (len(BOUNDS) - 1)]
            lines.append([setting.name, small(setting.mse), *shown])
    return Grid([phrase("setting"), phrase("worst MSE"), *BOUNDS], lines) if lines else None


def probes_table(settings: Sequence[Setting]) -> Grid | None:
    """Means over seeds, with the drop from the undefended setting that is most alike."""
    bare, lines = [setting for setting in settings if setting.undefended], []
    for setting in settings:
        twin = None if setting.undefended else most_alike(setting, bare)
        for probe, metric in _asked(setting):
            found, low, high, chance = (_told(setting, probe, metric, by) for by in ("mean", "low", "high", "chance"))
            undefended = _told(twin, probe, metric) if twin else math.nan
            interval = f"{ratio(low)}–{ratio(high)}" if is_number(low) else MISSING
            shown = ratio(found), interval, *map(ratio, (chance, undefended, undefended - found))
            lines.append([setting.name, probe, metric, *shown])
    heading = [
        phrase("setting"),
        phrase("probe"),
        phrase("metric"),
        phrase("measured"),
        phrase("95 %"),
        phrase("chance"),
        phrase("undefended"),
        phrase("drop"),
    ]
    return Grid(heading, lines, words=3) if lines else None


def _asked(setting: Setting) -> list[tuple[str, str]]:
    asked = setting.runs[0].probes.items()
    return [(probe, metric) for probe, told in asked for metric, found in told.items() if isinstance(found, Mapping)]


def _told(setting: Setting, probe: str, metric: str, by: str = "mean") -> float:
    found = [run.probes.get(probe, {}).get(metric) for run in setting.runs]
    return mean([told.get(by, math.nan) for told in found if isinstance(told, Mapping)])


def pieces_table(settings: Sequence[Setting]) -> Grid | None:
    """What one small decoder makes of every piece of what is sent, and of the whole."""
    lines = []
    for setting in settings:
        for piece in setting.runs[0].pieces:
            scores = [run.pieces[piece] for run in setting.runs if piece in run.pieces]
            cells = small(mean([each.mse for each in scores])), ratio(mean([each.ssim for each in scores]))
            lines.append([setting.name, piece.replace("_", " "), *cells])
    return Grid([phrase("setting"), phrase("piece"), phrase("MSE"), phrase("SSIM")], lines, words=2) if lines else None


COSTS: Mapping[str, tuple[str, Show]] = {
    "step_ms": (phrase("ms per step"), decibel),
    "surrogate_share": (phrase("of it in the penalty"), percent),
    "train_s": (phrase("training, s"), count),
    "peak_mb": (phrase("peak memory, MB"), count),
    "multiplications_device": (phrase("multiplications, device"), count),
    "params_device": (phrase("parameters, device"), count),
    "params_cloud": (phrase("parameters, cloud"), count),
    "bytes": (phrase("bytes on the wire"), count),
}


def cost_table(settings: Sequence[Setting]) -> Grid | None:
    bare = [setting for setting in settings if setting.undefended]
    shown = {name: words for name, words in COSTS.items() if any(name in s.runs[0].cost for s in settings)}
    lines = []
    for setting in settings:
        reference = most_alike(setting, bare)
        ours, theirs = _cost(setting, "step_ms"), _cost(reference, "step_ms") if reference else math.nan
        overhead = f"{ours / theirs:.2f}" if is_number(ours) and is_number(theirs) and theirs > 0 else MISSING
        lines.append([setting.name, overhead, *(show(_cost(setting, name)) for name, (_, show) in shown.items())])
    return (
        Grid([phrase("setting"), phrase("step, × undefended"), *(title for title, _ in shown.values())], lines)
        if shown
        else None
    )


def _cost(setting: Setting, name: str) -> float:
    return mean([run.cost.get(name, math.nan) for run in setting.runs])
