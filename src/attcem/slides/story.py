"""What a talk is about: the runs of one data set, network and suite, and the defence that hides most."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from attcem.compare import Comparison, Row, compare
from attcem.compare.reach import span_of
from attcem.figures.group import Drawn, Group, groups_of
from attcem.figures.style import short
from attcem.language import Say
from attcem.report.verdict import Kind, classify
from attcem.runs import Curve, Setting, curves_of, settings_of
from attcem.runs.settings import most_alike
from attcem.types import Result

LAST = (Kind.COLLAPSED, Kind.UNMEASURED, Kind.WEAK_ATTACK)
LETTERS = 52  # of a name in a sentence


@dataclass(frozen=True)
class Story:
    """Runs that are told together, in one language."""

    group: Group
    say: Say
    at_accuracy: float | None = None

    @cached_property
    def settings(self) -> list[Setting]:
        return settings_of(self.group.runs)

    @cached_property
    def judged(self) -> list[tuple[Setting, Kind]]:
        """Every defended setting and the word for it, what hides most first."""
        bare = [setting for setting in self.settings if setting.undefended]
        defended = [setting for setting in self.settings if not setting.undefended]
        found = [(setting, classify(setting, most_alike(setting, bare))[0]) for setting in defended]
        return sorted(found, key=lambda pair: (pair[1] in LAST, pair[0].recovered if pair[1] not in LAST else 0.0))

    @property
    def hero(self) -> Setting:
        """The setting whose chain is drawn: what hides most, or the network without a defence where that is all."""
        return self.judged[0][0] if self.judged else self.settings[0]

    @property
    def kind(self) -> Kind | None:
        return self.judged[0][1] if self.judged else None

    @property
    def bare(self) -> Setting | None:
        """The undefended setting that the hero is compared with."""
        return most_alike(self.hero, [setting for setting in self.settings if setting.undefended])

    @cached_property
    def curves(self) -> list[Curve]:
        return curves_of(self.group.runs)

    @cached_property
    def curve(self) -> Curve | None:
        """The hero at all of its strengths."""
        runs = {id(run) for run in self.hero.runs}
        return next((curve for curve in self.curves if runs & {id(run) for run in curve.runs}), None)

    @cached_property
    def comparison(self) -> Comparison | None:
        """At one accuracy: the one asked for, or the highest that all defences reach, or that most of them do."""
        asked = [self.at_accuracy] if self.at_accuracy is not None else [None, most_covered(self.curves)]
        for accuracy in asked:
            with suppress(ValueError):
                return compare(self.group.runs, at_accuracy=accuracy)
        return None

    @property
    def row(self) -> Row | None:
        """The hero's line of the comparison."""
        rows = self.comparison.rows if self.comparison else ()
        return next((row for row in rows if self.curve and row.defence == self.curve.name), None)

    @property
    def drawn(self) -> list[Drawn]:
        """No defence, the hero at its strength, then the others, each at one."""
        others = [one for one in self.group.drawn if not set(map(id, one.runs)) & set(map(id, self.own_curve))]
        bare = [one for one in others if one in self.group.undefended]
        looks = [one for one in self.group.defences if set(map(id, self.own_curve)) & set(map(id, _all(one)))]
        hero = [Drawn(self.hero.name, (self.hero,), looks[0].look)] if looks else []
        return [*bare, *hero, *(one for one in others if one not in bare)]

    @property
    def own_curve(self) -> Sequence[Result]:
        return self.curve.runs if self.curve else ()

    def name(self, text: str, letters: int = LETTERS) -> str:
        """A defence's name, which is as users type it, but for "no defence", which is no name."""
        return short(self.say.again(text), letters)


def _all(one: Drawn) -> list[Result]:
    return [run for setting in one.settings for run in setting.runs]


def most_covered(curves: Sequence[Curve]) -> float | None:
    """Of the accuracies that defended runs have, the one that most curves can be read at, the highest of several."""
    spans = [span_of(curve) for curve in curves]
    ends = [min(run.accuracy for run in setting.runs) for curve in curves for setting in curve.settings]
    return max(ends, key=lambda at: (sum(s.low <= at <= s.high for s in spans), at), default=None)


def stories(results: Sequence[Result], say: Say, at_accuracy: float | None = None) -> list[Story]:
    return [Story(group, say, at_accuracy) for group in groups_of(results, at_accuracy)]
