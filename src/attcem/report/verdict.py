"""The verdict: what the numbers say, in plain words, and no more than they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from attcem.report.numbers import SPACE, is_number, percent, ratio, small
from attcem.report.settings import Setting, differences
from attcem.types import Result

POINTS_LOST = 0.10
"""A defence that costs more accuracy than this has bought its privacy with the task."""
ABOVE_CHANCE = 0.10
"""Accuracy below chance plus this share of the way to 1 is called near chance."""
NEARLY = 0.9
"""A defence that leaves this share of the undefended leak has done next to nothing."""
HALF = 0.5
FAINT = 0.1
"""An undefended recovered share below this means that the attacks are too weak to judge by."""


class Kind(Enum):
    """The word that stands beside a defence."""

    HIDES_MOST = "hides most"
    HIDES_SOME = "hides some"
    NOTHING = "next to nothing"
    COLLAPSED = "accuracy lost"
    WEAK_ATTACK = "attack too weak"
    ALONE = "no comparison"
    UNMEASURED = "not measured"


@dataclass(frozen=True)
class Judgement:
    """What is said of one defended setting."""

    setting: Setting
    kind: Kind
    sentence: str
    flagged: bool


@dataclass(frozen=True)
class Verdict:
    """What is said of all runs on one data set and backbone."""

    place: tuple[str, str]
    opening: str
    judgements: list[Judgement]


def flag_line(results: Sequence[Result]) -> str:
    """The first line of a page whose audit is flagged; empty otherwise."""
    flagged = [run for run in results if run.flags]
    if not flagged:
        return ""
    total = sum(len(run.flags) for run in flagged)
    warnings = f"{total} warning" + "s" * (total > 1)
    return (
        f"This audit is flagged: {warnings} in {len(flagged)} of {len(results)} run{'s' * (len(results) > 1)}. "
        "A flagged attack may be weaker than it should be, so a defence may look better than it is."
    )


def verdicts(settings: Sequence[Setting]) -> list[Verdict]:
    """One verdict per data set and backbone, in order of appearance."""
    places = dict.fromkeys(setting.place for setting in settings)
    return [_verdict(place, [setting for setting in settings if setting.place == place]) for place in places]


def _verdict(place: tuple[str, str], settings: list[Setting]) -> Verdict:
    bare = [setting for setting in settings if setting.undefended]
    judgements = []
    for setting in settings:
        if not setting.undefended:
            judgements.append(judge(setting, reference_for(setting, bare)))
    return Verdict(place, " ".join(map(opening, bare)) if bare else NO_REFERENCE, judgements)


NO_REFERENCE = (
    "There is no undefended run to compare with, so nothing here shows what a defence gains or costs: "
    "run the same experiment with defence “none” and report both."
)


def reference_for(setting: Setting, bare: Sequence[Setting]) -> Setting | None:
    """The undefended setting most like this one."""
    return min(bare, key=lambda other: len(differences(setting.config, other.config)), default=None)


def opening(setting: Setting) -> str:
    """What the cloud gets without a defence."""
    if not is_number(setting.recovered):
        return f"Without a defence the leak was not measured; the accuracy is {ratio(setting.accuracy)}."
    extent = next(words for least, words in EXTENTS if setting.recovered >= least)
    where = "" if setting.name == "none" else f" {setting.name.removeprefix('none ')}"
    where += over_seeds(setting)
    said = (
        f"Without a defence{where} the cloud {extent} the pictures: MSE {small(setting.mse)} where the average picture "
        f"alone has {small(setting.baseline_mse('mean_image'))}, that is {percent(setting.recovered)} of what there is "
        f"to see beyond the average picture, at an accuracy of {ratio(setting.accuracy)}."
    )
    if setting.recovered < FAINT:
        said += " Attacks this weak on an open door say nothing about a defence."
    return said + (" The undefended model itself is near chance." if near_chance(setting) else "")


EXTENTS = (
    (0.75, "rebuilds"),
    (0.4, "rebuilds much of"),
    (FAINT, "gets a rough idea of"),
    (0.0, "gets next to nothing of"),
)


def over_seeds(setting: Setting) -> str:
    """A remark that numbers are means, when they are."""
    return f" (mean of {setting.seeds} seeds)" if setting.seeds > 1 else ""


def near_chance(setting: Setting) -> bool:
    """Whether the classifier is hardly better than guessing among its classes."""
    classes = len(setting.runs[0].per_class)
    return classes > 1 and setting.accuracy < 1 / classes + ABOVE_CHANCE * (1 - 1 / classes)


def judge(setting: Setting, reference: Setting | None) -> Judgement:
    """Compare a defended setting with the undefended one."""
    kind = classify(setting, reference)
    said = f"With {setting.name}{over_seeds(setting)} it gets to MSE {small(setting.mse)}, "
    said += f"{percent(setting.recovered)} of what there is to see, at an accuracy of {ratio(setting.accuracy)}"
    said += f" instead of {ratio(reference.accuracy)}." if reference else "."
    said += REMARKS[kind](setting, reference) + _class_remark(setting)
    unlike = differences(setting.config, reference.config) if reference else []
    if unlike:
        said += f" Not like for like: {', '.join(unlike)}."
    return Judgement(setting, kind, said, any(run.flags for run in setting.runs))


def classify(setting: Setting, reference: Setting | None) -> Kind:
    """The kindest word that is still true."""
    tests = (
        (Kind.COLLAPSED, near_chance(setting) or (reference and reference.accuracy - setting.accuracy > POINTS_LOST)),
        (Kind.ALONE, reference is None),
        (Kind.UNMEASURED, not (is_number(setting.recovered) and reference and is_number(reference.recovered))),
        (Kind.WEAK_ATTACK, reference and reference.recovered < FAINT),
        (Kind.NOTHING, reference and setting.recovered >= NEARLY * reference.recovered),
        (Kind.HIDES_SOME, reference and setting.recovered > HALF * reference.recovered),
    )
    return next((kind for kind, holds in tests if holds), Kind.HIDES_MOST)


def _collapsed(setting: Setting, reference: Setting | None) -> str:
    if reference is None or near_chance(setting):
        return f" A defence at {percent(setting.accuracy)} accuracy is no defence."
    points = 100 * (reference.accuracy - setting.accuracy)
    return (
        f" That costs {points:.0f}{SPACE}points: a defence at {percent(setting.accuracy)} accuracy, "
        f"where {percent(reference.accuracy)} can be had, is no defence."
    )


def _nothing(setting: Setting, reference: Setting | None) -> str:
    without = reference.recovered if reference else float("nan")
    if setting.recovered > without:
        return f" It hides nothing: without it the cloud sees {percent(without)}."
    return f" That is next to nothing: without it the cloud sees {percent(without)}."


REMARKS = {
    Kind.HIDES_MOST: lambda setting, reference: f" Without it, {percent(reference.recovered)}.",
    Kind.HIDES_SOME: lambda setting, reference: f" Without it, {percent(reference.recovered)}: most still leaks.",
    Kind.NOTHING: _nothing,
    Kind.COLLAPSED: _collapsed,
    Kind.WEAK_ATTACK: lambda setting, reference: " The attacks fail without a defence too, so this shows nothing.",
    Kind.ALONE: lambda setting, reference: (
        f" The average picture alone has {small(setting.baseline_mse('mean_image'))}."
    ),
    Kind.UNMEASURED: lambda setting, reference: " The leak was not measured, so nothing can be said of it.",
}


def _class_remark(setting: Setting) -> str:
    """Say so when the attacker learned no more than the label, which the task gives away anyway."""
    known = setting.baseline_mse("class_mean")
    return " Knowing the class alone would show as much." if setting.mse >= known else ""
