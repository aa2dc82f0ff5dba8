"""Who is drawn: runs of one data set, network and suite, as defences at their strengths, each with its own look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attcem.compare.curves import Curve, curves_of
from attcem.compare.settings import UNDEFENDED as NO_DEFENCE
from attcem.compare.settings import is_number, links, numbers
from attcem.figures.style import UNDEFENDED, Look, look
from attcem.report.numbers import mean
from attcem.report.settings import SYMBOLS, Setting, settings_of
from attcem.twins import flat, with_twins
from attcem.types import Result

MOST = 8
"""More defences than this in one plot of lines are a tangle."""


@dataclass(frozen=True)
class Drawn:
    """One setting, with the name and the look of its defence."""

    name: str
    setting: Setting
    look: Look

    @property
    def runs(self) -> tuple[Result, ...]:
        """One run per seed."""
        return self.setting.runs


@dataclass(frozen=True)
class Defence:
    """A defence at all of its strengths, the weakest first."""

    name: str
    strengths: tuple[Drawn, ...]
    look: Look

    def nearest(self, accuracy: float) -> Drawn:
        """The strength whose accuracy comes nearest."""
        return min(self.strengths, key=lambda drawn: abs(drawn.setting.accuracy - accuracy))


@dataclass(frozen=True)
class Group:
    """All runs in one place that were attacked alike: what is undefended, and the defences."""

    place: tuple[str, ...]
    undefended: tuple[Drawn, ...]
    defences: tuple[Defence, ...]
    accuracy: float
    """Where defences are compared with one another: the highest that all of them reach, or the one asked for."""

    @property
    def drawn(self) -> list[Drawn]:
        """No defence, then every defence at the strength whose accuracy comes nearest."""
        return [*self.undefended[:1], *(defence.nearest(self.accuracy) for defence in self.defences)]

    @property
    def runs(self) -> list[Result]:
        """Every run of the group."""
        strengths = [drawn for defence in self.defences for drawn in defence.strengths]
        return [run for drawn in (*self.undefended, *strengths) for run in drawn.runs]

    def baseline(self, name: str) -> float:
        """MSE of a baseline, over all runs."""
        return mean([run.baselines[name].mse for run in self.runs if name in run.baselines])


def groups_of(results: Sequence[Result], at_accuracy: float | None = None) -> list[Group]:
    """One group per data set, backbone and version of the suite, in order of appearance."""
    found: dict[tuple[str, ...], list[Setting]] = {}
    for setting in settings_of(with_twins(results)):
        found.setdefault((*setting.place, setting.suite), []).append(setting)
    return [_group(place, settings, at_accuracy) for place, settings in found.items()]


def _group(place: tuple[str, ...], settings: Sequence[Setting], at_accuracy: float | None) -> Group:
    bare = [setting for setting in settings if setting.undefended]
    curves = curves_of([run for setting in settings for run in setting.runs])
    names = names_of(curves)
    defences = tuple(_defence(names[n], curve.own, look(n)) for n, curve in enumerate(curves))
    reached = [max(drawn.setting.accuracy for drawn in defence.strengths) for defence in defences]
    return Group(
        place,
        tuple(Drawn(s.name.replace("none", NO_DEFENCE, 1), s, UNDEFENDED) for s in bare),
        defences,
        min(reached, default=0.0) if at_accuracy is None else at_accuracy,
    )


def names_of(curves: Sequence[Curve]) -> list[str]:
    """The experiments' own names; else the chain, with the words that tell it from others of the same links."""
    words = [{key: value for key, value in flat(links(c.own[0])).items() if not is_number(value)} for c in curves]
    chains = [list(links(curve.own[0])) for curve in curves]
    found = []
    for own, chain in zip(words, chains, strict=True):
        alike = [other for other, its in zip(words, chains, strict=True) if its == chain]
        telling = [key for key in own if any(own[key] != other.get(key) for other in alike)]
        found.append(" + ".join(_with(link, own, telling) for link in chain))
    return [
        name if curve.name == curve.chain and found.count(name) == 1 else curve.name
        for name, curve in zip(found, curves, strict=True)
    ]


def _with(link: str, words: Mapping[str, Any], telling: Sequence[str]) -> str:
    said = [f"{key.removeprefix(f'{link}.')}={words[key]}" for key in telling if key.startswith(f"{link}.")]
    return f"{link}({', '.join(said)})" if said else link


def _defence(name: str, runs: Sequence[Result], its: Look) -> Defence:
    """Runs of one curve, grouped over seeds and named by the numbers that tell them apart."""
    settings = sorted(settings_of(runs), key=lambda setting: list(numbers(setting.runs[0]).values()))
    seen = [numbers(setting.runs[0]) for setting in settings]
    varying = [key for key in seen[0] if len({other.get(key) for other in seen}) > 1]
    strengths = []
    for setting, own in zip(settings, seen, strict=True):
        told = [f"{symbol(key)}={own[key]:g}" for key in varying if key in own]
        strengths.append(Drawn(" ".join([name, *told]), setting, its))
    return Defence(name, tuple(strengths), its)


def symbol(key: str) -> str:
    """`bound.lam` → λ."""
    option = key.rpartition(".")[2]
    return SYMBOLS.get(option, option)
