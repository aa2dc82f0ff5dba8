"""Bounds beside measurements, probes beside chance, and what a defence costs, as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attcem.report.charts import Grid
from attcem.runs import Setting
from attcem.runs.numbers import MISSING, count, decibel, is_number, mean, percent, ratio, small
from attcem.runs.twins import most_alike
from attcem.types import Result

Show = Callable[[float | None], str]


def tables(settings: Sequence[Setting]) -> dict[str, Grid | None]:
    """Those of one place, by name; None where there is nothing to show."""
    return {"bounds": bounds_table(settings), "probes": probes_table(settings), "cost": cost_table(settings)}


def bounds_table(settings: Sequence[Setting]) -> Grid | None:
    """What the attacks reached and what theory says of any attack; nothing where nobody asked theory."""
    having = [setting for setting in settings if any(run.bounds for run in setting.runs)]
    heading = ["setting", "worst MSE", "MSE floor, estimate", "Fisher floor, estimate", "information, nats at most"]
    heading += ["found among 10\N{NARROW NO-BREAK SPACE}000, at most"]
    return Grid(heading, [_bounds_line(setting) for setting in having]) if having else None


def _bounds_line(setting: Setting) -> list[str]:
    def over_runs(value: Callable[[Mapping[str, Any]], Any], show: Show) -> str:
        return show(mean([value(run.bounds) for run in setting.runs]))

    why = next((run.bounds["why"] for run in setting.runs if run.bounds.get("why")), None)
    if why is not None:
        return [setting.name, small(setting.mse), str(why), *[MISSING] * 3]
    return [
        setting.name,
        small(setting.mse),
        over_runs(lambda found: found.get("mse_floor_estimate"), small),
        over_runs(lambda found: found.get("fisher", {}).get("mse"), small),
        over_runs(lambda found: found.get("rate_nats"), decibel),
        over_runs(_fano, ratio),
    ]


def _fano(bounds: Mapping[str, Any], candidates: int = 10_000) -> float | None:
    """Re-identification once among so many: the most that anyone can reach."""
    table = bounds.get("fano", {})
    rows = zip(table.get("candidates", []), table.get("queries", []), table.get("success", []), strict=False)
    return next((p for n, k, p in rows if (n, k) == (candidates, 1)), None)


def probes_table(settings: Sequence[Setting]) -> Grid | None:
    """What else the latents tell, beside a guess."""
    lines = [
        [setting.name, probe, metric, ratio(found.get("mean")), ratio(found.get("chance"))]
        for setting in settings
        for probe, metrics in setting.runs[0].probes.items()
        for metric, found in metrics.items()
        if isinstance(found, Mapping)
    ]
    return Grid(["setting", "probe", "metric", "measured", "chance"], lines, words=3) if lines else None


COSTS: Mapping[str, tuple[str, Show]] = {
    "step_ms": ("ms per step", decibel),
    "surrogate_share": ("of it in the penalty", percent),
    "train_s": ("training, s", count),
    "peak_mb": ("peak memory, MB", count),
    "params_device": ("parameters, device", count),
    "params_cloud": ("parameters, cloud", count),
    "bytes": ("bytes on the wire", count),
}


def cost_table(settings: Sequence[Setting]) -> Grid | None:
    """What each setting takes, and its step time against the undefended run's on the same machine."""
    bare = [setting for setting in settings if setting.undefended]
    shown = {name: words for name, words in COSTS.items() if any(name in s.runs[0].cost for s in settings)}
    if not shown:
        return None
    lines = []
    for setting in settings:
        reference = most_alike(setting, bare)
        cells = [show(_cost(setting.runs, name)) for name, (_, show) in shown.items()]
        lines.append([setting.name, _overhead(setting, reference), *cells])
    return Grid(["setting", "step, × undefended", *(title for title, _ in shown.values())], lines)


def _cost(runs: Sequence[Result], name: str) -> float:
    return mean([run.cost.get(name, float("nan")) for run in runs])


def _overhead(setting: Setting, reference: Setting | None) -> str:
    ours, theirs = _cost(setting.runs, "step_ms"), _cost(reference.runs, "step_ms") if reference else float("nan")
    return f"{ours / theirs:.2f}" if is_number(ours) and is_number(theirs) and theirs > 0 else MISSING
