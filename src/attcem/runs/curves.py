"""Curves: a defence at all of its strengths, with its undefended twins."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from attcem.runs.config import differences, differing, grouped, links, numbers, strengths, words
from attcem.runs.names import name_chain, name_run, show_value, with_symbol
from attcem.runs.settings import Setting, find_twins, settings_of
from attcem.types import Result


@dataclass(frozen=True)
class Curve:
    """One defence: its settings, one for each strength, the weakest first, and its undefended twins."""

    name: str
    chain: str  # its links with all their words: another name it goes by
    settings: tuple[Setting, ...]
    undefended: tuple[Result, ...]
    dividing: tuple[str, ...] = ()  # numbers, not strengths, in which it differs from curves of the same words

    @cached_property
    def runs(self) -> list[Result]:
        """All with the defence on."""
        return [run for setting in self.settings for run in setting.runs]

    @cached_property
    def lines(self) -> dict[int, list[Result]]:
        """Seed → its runs, and the undefended one as their end if it is more accurate than all of them.

        A defence can gain accuracy; the undefended run would then lie in the middle of a line it is no part of.
        """
        found = {}
        for seed in sorted({run.seed for run in self.runs}):
            own = [run for run in self.runs if run.seed == seed]
            best = max(run.accuracy for run in own)
            found[seed] = own + [run for run in self.undefended if run.seed == seed and run.accuracy > best]
        return found

    def name_at(self, setting: Setting) -> str:
        own = numbers(setting.runs[0])
        return " ".join([self.name, *(with_symbol(key, own[key]) for key in _varying(self.settings) if key in own)])


def curves_of(runs: Sequence[Result]) -> list[Curve]:
    """Group runs into curves, in order of appearance, and give each a name of its own."""
    settings = settings_of(runs)
    for copies in (copies for setting in settings for copies in grouped(setting.runs, name_run) if len(copies) > 1):
        folders = ", ".join(str(run.folder) for run in copies if run.folder)
        raise ValueError(
            f"{len(copies)} runs of {name_run(copies[0])} have the same settings: name only one of them"
            + f" ({folders})" * bool(folders)
        )
    twins = {id(run): twin for run, twin in zip(runs, find_twins(runs), strict=True) if twin}
    families = grouped(
        (setting for setting in settings if not setting.undefended),
        lambda setting: [list(links(setting.runs[0])), words(setting.runs[0]), setting.surroundings],
    )
    return _named([curve for family in families for curve in _divided(family, twins)])


def _divided(family: Sequence[Setting], twins: dict[int, Result]) -> list[Curve]:
    """A curve for each value of the numbers that vary but are no strength; where no strength varies, there is one."""
    varying = _varying(family)
    strong = set().union(*(strengths(setting.runs[0]) for setting in family)) & set(varying)
    dividing = tuple(key for key in varying if key not in strong) if strong else ()
    curves = []
    for group in grouped(family, lambda setting: [numbers(setting.runs[0]).get(key) for key in dividing]):
        weakest_first = sorted(group, key=lambda setting: list(numbers(setting.runs[0]).values()))
        ends = {id(twin): twin for setting in group for run in setting.runs if (twin := twins.get(id(run)))}
        names = (run.config.get("name") or "" for setting in group for run in setting.runs)
        stems = {re.sub(r"[-_ ]+[a-z]*=?\d[\d.e+-]*$", "", name) for name in names}  # without the strength at its end
        own_name = stems.pop() if len(stems) == 1 else ""
        first = group[0].runs[0]
        chain = name_chain(first, {*words(first), *dividing})
        curves.append(Curve(own_name, chain, tuple(weakest_first), tuple(ends.values()), dividing))
    return curves


def _varying(settings: Sequence[Setting]) -> list[str]:
    seen = [numbers(setting.runs[0]) for setting in settings]
    keys = dict.fromkeys(key for own in seen for key in own)
    return [key for key in keys if len({own.get(key) for own in seen}) > 1]


def _named(curves: Sequence[Curve]) -> list[Curve]:
    """Each under its experiments' name if no other goes by it, else under its links and what differs from others."""
    suffixes = [_differing_surroundings(curve, curves) for curve in curves]
    plain = [_differing_words(curve, curves) + suffix for curve, suffix in zip(curves, suffixes, strict=True)]
    taken = Counter(name for curve, short in zip(curves, plain, strict=True) for name in {curve.name, short})
    taken[""] = 0
    return [
        replace(curve, name=curve.name if taken[curve.name] == 1 else short, chain=curve.chain + suffix)
        for curve, short, suffix in zip(curves, plain, suffixes, strict=True)
    ]


def _differing_words(curve: Curve, curves: Sequence[Curve]) -> str:
    run = curve.runs[0]
    others = [words(other.runs[0]) for other in curves if list(links(other.runs[0])) == list(links(run))]
    return name_chain(run, {*differing(words(run), others), *curve.dividing})


def _differing_surroundings(curve: Curve, curves: Sequence[Curve]) -> str:
    """The settings around the defence that differ from other curves of the same chain, in square brackets."""
    ours = curve.settings[0].surroundings
    others = [other.settings[0].surroundings for other in curves if other.chain == curve.chain]
    keys = dict.fromkeys(key for theirs in others for key in differences(ours, theirs))
    return f" [{', '.join(f'{key}={show_value(key, ours.get(key))}' for key in keys)}]" if keys else ""
