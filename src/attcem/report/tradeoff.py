"""The picture of all runs at once: what the task keeps against what leaks, every setting with its spread over seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attcem.report.charts import Chart, Drawing, Grid, Trace, axis, beside, colour, symbol, upright, words
from attcem.report.labels import free_places
from attcem.report.numbers import MISSING, is_number, mean, percent, ratio, share, small, spread
from attcem.report.settings import Setting, recovered_share
from attcem.types import Result, Scores

NAMED = 7
"""Up to so many settings are named beside their points; more would be a heap."""


@dataclass(frozen=True)
class Leak:
    """One way to measure what leaks."""

    axis: str
    of: Callable[[Result, Scores], float]
    show: Callable[[float | None], str]


LEAKS = {
    "MSE": Leak("worst-case MSE   (right: hides more)", lambda run, scores: scores.mse, small),
    "SSIM": Leak("worst-case SSIM   (left: hides more)", lambda run, scores: scores.ssim, ratio),
    "recovered share": Leak(
        "recovered share   (left: hides more)", lambda run, scores: recovered_share(scores, run), percent
    ),
}
MARKS = {"mean_image": "mean image: nothing left to see", "class_mean": "class mean: the label alone"}


def tradeoff(settings: Sequence[Setting]) -> Chart | None:
    """Accuracy against the worst case of every setting of one place; nothing where nothing was measured."""
    drawings = {name: _drawing(leak, settings) for name, leak in LEAKS.items()}
    drawings = {name: drawn for name, drawn in drawings.items() if drawn.traces}
    if not drawings:
        return None
    note = (
        "Up is useful. One point per setting, bars are ± one standard deviation over seeds, small dots the seeds. "
        "A square has no defence; dotted lines are what an attacker gets without the latent."
    )
    return Chart("What the task keeps, what the cloud sees", note, drawings, _table(settings), 430)


def _drawing(leak: Leak, settings: Sequence[Setting]) -> Drawing:
    kins = list(dict.fromkeys(setting.kin for setting in settings if not setting.undefended))
    measured = [setting for setting in settings if is_number(setting.accuracy) and is_number(_leak(leak, setting)[0])]
    if not measured:
        return Drawing([])
    bare = [setting for setting in measured if setting.undefended]
    groups = [(None, bare), *((place, [s for s in measured if s.kin == kin]) for place, kin in enumerate(kins))]
    marks = {said: _baseline(leak, settings, name) for name, said in MARKS.items()}
    marks |= {"no defence": _leak(leak, bare[0])[0]} if bare else {}
    marks = {said: x for said, x in marks.items() if is_number(x)}
    x_range = _around([0.0, *marks.values(), *(_leak(leak, setting)[0] for setting in measured)])
    y_range = _around([run.accuracy for setting in measured for run in setting.runs])
    names = _names(leak, measured, (x_range, y_range), marks) if len(settings) <= NAMED else {}
    traces: list[Trace] = []
    for place, members in groups:
        if members:
            traces += [_seeds(leak, members, place), _points(leak, members, place, names)]
    layout: dict[str, Any] = {
        "xaxis": axis(leak.axis, range=x_range),
        "yaxis": axis("accuracy", tickformat=".0%", range=y_range),
        "shapes": [upright(x) for x in marks.values()],
        "annotations": [beside(x, said) for said, x in marks.items()],
    }
    return Drawing([trace for trace in traces if trace["x"]], layout | {"hovermode": "closest"})


def _around(values: Sequence[float]) -> list[float]:
    """A span with some air; what is zero stays at the edge."""
    low, high = min(values), max(values)
    air = 0.12 * (high - low) or 0.05
    return [low - air if low > 0 else low, high + air]


def _leak(leak: Leak, setting: Setting) -> tuple[float, float]:
    values = [leak.of(run, run.worst) for run in setting.runs]
    return mean(values), spread(values)


def _baseline(leak: Leak, settings: Sequence[Setting], name: str) -> float:
    runs = [run for setting in settings for run in setting.runs if name in run.baselines]
    return mean([leak.of(run, run.baselines[name]) for run in runs])


def _names(
    leak: Leak, settings: Sequence[Setting], ranges: tuple[list[float], list[float]], marks: Mapping[str, float]
) -> dict[str, str]:
    """Where the names of settings can stand beside their points; that of no defence stands on its line."""
    points = [(_leak(leak, s)[0], s.accuracy, "" if s.undefended else s.title) for s in settings]
    places = free_places(points, *ranges, marks)
    return {s.title: where for s, where in zip(settings, places, strict=True) if where and not s.undefended}


def _points(leak: Leak, members: Sequence[Setting], place: int | None, names: Mapping[str, str]) -> Trace:
    """The settings of one family, joined from strong to weak where there are several."""
    members = sorted(members, key=lambda setting: setting.accuracy)
    leaks = [_leak(leak, setting) for setting in members]
    deviations = [spread([run.accuracy for run in setting.runs]) for setting in members]
    hover = [
        f"<b>{words(setting.title)}</b><br>accuracy {_pair(setting.accuracy, deviation, share)}"
        f"<br>{leak.axis.split('   ')[0]} {_pair(*found, leak.show)}<br>{_seed_count(setting)}"
        for setting, deviation, found in zip(members, deviations, leaks, strict=True)
    ]
    several = len(members) > 1 and place is not None
    return {
        "type": "scatter",
        "mode": "markers" + "+lines" * several + "+text" * bool(names),
        "name": words("no defence" if place is None else members[0].kin),
        "x": [found for found, _ in leaks],
        "y": [setting.accuracy for setting in members],
        "error_x": {"type": "data", "array": [d for _, d in leaks], "color": colour(place), "thickness": 1.2},
        "error_y": {"type": "data", "array": deviations, "color": colour(place), "thickness": 1.2},
        "text": [words(setting.title) if setting.title in names else "" for setting in members],
        "textposition": [names.get(setting.title, "top center") for setting in members],
        "cliponaxis": False,
        "hovertext": hover,
        "hoverinfo": "text",
        "line": {"color": colour(place), "width": 1.2, "dash": "dot"},
        "marker": {
            "color": colour(place),
            "symbol": symbol(place),
            "size": 11,
            "line": {"color": "@paper", "width": 1},
        },
    }


def _seeds(leak: Leak, members: Sequence[Setting], place: int | None) -> Trace:
    """Every run of the settings that have several."""
    runs = [run for setting in members if setting.seeds > 1 for run in setting.runs]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [leak.of(run, run.worst) for run in runs],
        "y": [run.accuracy for run in runs],
        "hoverinfo": "skip",
        "showlegend": False,
        "marker": {"color": colour(place), "size": 4, "opacity": 0.45},
    }


def _pair(value: float, deviation: float, show: Callable[[float | None], str]) -> str:
    return show(value) + (f" ± {show(deviation)}" if is_number(deviation) else "")


def _seed_count(setting: Setting) -> str:
    return f"{setting.seeds} seed" + "s" * (setting.seeds > 1)


def _table(settings: Sequence[Setting]) -> Grid:
    lines = [
        [
            setting.title,
            _pair(setting.accuracy, spread([run.accuracy for run in setting.runs]), share),
            *(_pair(*_leak(leak, setting), leak.show) for leak in LEAKS.values()),
            str(setting.seeds),
        ]
        for setting in settings
    ]
    for name, said in MARKS.items():
        values = [leak.show(_baseline(leak, settings, name)) for leak in LEAKS.values()]
        lines.append([said, MISSING, *values, MISSING])
    return Grid(["setting", "accuracy", *LEAKS, "seeds"], lines)
