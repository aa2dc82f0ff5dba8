"""Who is drawn: runs of one data set, network and suite, as defences at their strengths, each with its own look."""

from collections.abc import Sequence
from typing import NamedTuple

from attcem.figures.style import UNDEFENDED, Look, look
from attcem.runs import Setting, curves_of, settings_of, with_twins
from attcem.runs.config import grouped
from attcem.runs.numbers import mean
from attcem.types import Result

MOST = 8  # more defences than this in one plot of lines are a tangle


class Drawn(NamedTuple):
    """A defence at some of its strengths, the weakest first, with its name and its look."""

    name: str
    settings: tuple[Setting, ...]
    look: Look

    @property
    def runs(self) -> tuple[Result, ...]:
        """One run per seed, at its first strength."""
        return self.settings[0].runs


class Group(NamedTuple):
    """All runs in one place that were attacked alike: what is undefended, and the defences."""

    place: tuple[str, ...]
    runs: list[Result]
    undefended: list[Drawn]
    defences: list[Drawn]
    drawn: list[Drawn]  # no defence, then every defence at the strength whose accuracy comes nearest to `accuracy`
    accuracy: float
    """Where defences are compared with one another: the highest that all of them reach, or the one asked for."""
    mean_image: float


def groups_of(results: Sequence[Result], at_accuracy: float | None = None) -> list[Group]:
    """One group per data set, backbone and version of the suite, in order of appearance."""
    groups = grouped(settings_of(with_twins(results)), lambda setting: (*setting.place, setting.suite))
    return [_group(settings, at_accuracy) for settings in groups]


def _group(settings: Sequence[Setting], at_accuracy: float | None) -> Group:
    runs = [run for setting in settings for run in setting.runs]
    mean_image = mean([run.baselines["mean_image"].mse for run in runs if "mean_image" in run.baselines])
    bare = [Drawn(setting.name, (setting,), UNDEFENDED) for setting in settings if setting.undefended]
    curves = curves_of(runs)
    accuracy = min((max(s.accuracy for s in curve.settings) for curve in curves), default=0.0)
    accuracy = accuracy if at_accuracy is None else at_accuracy
    defences, drawn = [], bare[:1]
    for number, curve in enumerate(curves):
        nearest = min(curve.settings, key=lambda setting: abs(setting.accuracy - accuracy))
        defences.append(Drawn(curve.name, curve.settings, look(number)))
        drawn.append(Drawn(curve.name_at(nearest), (nearest,), look(number)))
    return Group((*settings[0].place, settings[0].suite), runs, bare, defences, drawn, accuracy, mean_image)
