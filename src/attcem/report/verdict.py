"""The verdict: what the numbers say, in plain words, and no more than they say."""

import math
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from attcem.language import ENGLISH, Say, phrase
from attcem.runs import Setting
from attcem.runs.config import differences
from attcem.runs.names import UNDEFENDED, short
from attcem.runs.numbers import is_number, percent, ratio, share, small
from attcem.runs.settings import Place, most_alike, places
from attcem.types import Result

POINTS_LOST = 0.10  # a defence that costs more accuracy than this has bought its privacy with the task
ABOVE_CHANCE = 0.10  # accuracy below chance plus this share of the way to 1 is called near chance
NEARLY = 0.9  # a defence that leaves this share of the undefended leak has done next to nothing
FAINT = 0.1  # an undefended recovered share below this means that the attacks are too weak to judge by
EXTENTS = {
    0.75: phrase("rebuilds"),
    0.4: phrase("rebuilds much of"),
    FAINT: phrase("gets a rough idea of"),
    0.0: phrase("gets next to nothing of"),
}
NO_REFERENCE = phrase(
    "There is no undefended run to compare with, so nothing here shows what a defence gains or costs: "
    "run the same experiment with defence “none” and report both."
)


class Kind(Enum):
    """The word that stands beside a defence."""

    HIDES_MOST = phrase("hides most")
    HIDES_SOME = phrase("hides some")
    NOTHING = phrase("next to nothing")
    COLLAPSED = phrase("accuracy lost")
    WEAK_ATTACK = phrase("attack too weak")
    ALONE = phrase("no comparison")
    UNMEASURED = phrase("not measured")


class Judgement(NamedTuple):
    """One defended setting in a word and a sentence."""

    setting: Setting
    kind: Kind
    sentence: str
    flags: int


class Verdict(NamedTuple):
    """All runs on one data set and backbone."""

    place: Place
    opening: str
    judgements: list[Judgement]


def flag_line(results: Sequence[Result], say: Say = ENGLISH) -> str:
    flags = [len(run.flags) for run in results if run.flags]
    text = say(
        "This audit is flagged: {flags:flag|flags} in {flagged} of {runs:run|runs}. "
        "A flagged attack may be weaker than it should be, so a defence may look better than it is.",
        flags=sum(flags),
        flagged=len(flags),
        runs=len(results),
    )
    return text if flags else ""


def verdicts(settings: Sequence[Setting], say: Say = ENGLISH) -> list[Verdict]:
    """One per data set and backbone: what hides most comes first, what lost the task or was not measured last."""
    found, last = [], (Kind.COLLAPSED, Kind.UNMEASURED)
    for place, members in places(settings).items():
        bare = [setting for setting in members if setting.undefended]
        judged = [judge(setting, most_alike(setting, bare), say) for setting in members if not setting.undefended]
        judged.sort(key=lambda each: (each.kind in last, 0.0 if each.kind in last else each.setting.recovered))
        found.append(Verdict(place, say.between.join(opening(each, say) for each in bare) or say(NO_REFERENCE), judged))
    return found


def opening(setting: Setting, say: Say = ENGLISH) -> str:
    if not is_number(setting.recovered):
        accuracy = share(setting.accuracy)
        return say("Without a defence the leak was not measured; the accuracy is {accuracy}.", accuracy=accuracy)
    extent = next(words for least, words in EXTENTS.items() if setting.recovered >= least)
    text = say(
        "Without a defence{where} the cloud {rebuilds} the pictures: at {accuracy} accuracy{seeds}, {best} recovers "
        "images at SSIM\N{NO-BREAK SPACE}{ssim}, {share} of what there is to see beyond the average picture.",
        where=setting.name.removeprefix(UNDEFENDED),
        rebuilds=say(extent),
        accuracy=share(setting.accuracy),
        seeds=over_seeds(setting, say),
        best=best_of(setting, say),
        ssim=ratio(setting.ssim),
        share=percent(setting.recovered),
    )
    remarks = {
        say(" Attacks this weak on an open door say nothing about a defence."): setting.recovered < FAINT,
        say(" The undefended model itself is near chance."): near_chance(setting),
    }
    return text + "".join(remark for remark, holds in remarks.items() if holds)


def best_of(setting: Setting, say: Say = ENGLISH) -> str:
    several = setting.attacks > 1
    return say("the best of {attacks} attacks", attacks=setting.attacks) if several else say("the one attack")


def over_seeds(setting: Setting, say: Say = ENGLISH) -> str:
    return say(", mean of {seeds} seeds", seeds=setting.seeds) if setting.seeds > 1 else ""


def near_chance(setting: Setting) -> bool:
    classes = len(setting.runs[0].per_class)
    return classes > 1 and setting.accuracy < 1 / classes + ABOVE_CHANCE * (1 - 1 / classes)


def judge(setting: Setting, reference: Setting | None, say: Say = ENGLISH) -> Judgement:
    kind, remark = classify(setting, reference, say)
    instead = say(" instead of {accuracy}", accuracy=share(reference.accuracy)) if reference else ""
    bare_ssim = say("; undefended {ssim}", ssim=ratio(reference.ssim)) if reference else ""
    bare_share = say(", undefended {share}", share=percent(reference.recovered)) if reference else ""
    text = say(
        "At {accuracy} accuracy{instead}, {best} recovers images at SSIM\N{NO-BREAK SPACE}{ssim}{bare_ssim}. "
        "That is {share} of what there is to see{bare_share} (MSE\N{NO-BREAK SPACE}{mse}{seeds}).",
        accuracy=share(setting.accuracy),
        instead=instead,
        best=best_of(setting, say),
        ssim=ratio(setting.ssim),
        bare_ssim=bare_ssim,
        share=percent(setting.recovered),
        bare_share=bare_share,
        mse=small(setting.mse),
        seeds=over_seeds(setting, say),
    )
    text += remark
    if setting.mse >= setting.baseline("class_mean"):
        text += say(" Knowing the class alone would show as much.")
    text += describe_drop(setting, reference, say)
    unlike = differences(setting.surroundings, reference.surroundings) if reference else {}
    if unlike:
        listed = (
            say("{key}={ours} instead of {theirs}", key=key, ours=short(ours), theirs=short(theirs))
            for key, (ours, theirs) in unlike.items()
        )
        text += say(" Not like for like: {listed}.", listed=", ".join(listed))
    return Judgement(setting, kind, text, sum(len(run.flags) for run in setting.runs))


def describe_drop(setting: Setting, reference: Setting | None, say: Say = ENGLISH) -> str:
    """How much less of a picture's attributes is told than undefended; nothing where that was not asked of both."""
    drop = reference.described() - setting.described() if reference else math.nan
    if not (reference and is_number(drop)):
        return ""
    return say(
        " All attributes at once are told {points}\N{NO-BREAK SPACE}points less often: from {before} of the pictures "
        "to {after} (chance {chance}).",
        points=f"{100 * drop:.1f}",
        before=share(reference.described()),
        after=share(setting.described()),
        chance=share(setting.described("chance")),
    )


def classify(setting: Setting, reference: Setting | None, say: Say = ENGLISH) -> tuple[Kind, str]:
    """The kindest word that is still true, and a remark."""
    kept = percent(setting.accuracy)
    if near_chance(setting):
        return Kind.COLLAPSED, say(" A defence at {accuracy} accuracy is no defence.", accuracy=kept)
    if reference is None:
        free = small(setting.baseline("mean_image"))
        return Kind.ALONE, say(" The average picture alone has {mse}.", mse=free)
    lost = reference.accuracy - setting.accuracy
    if lost > POINTS_LOST:
        return Kind.COLLAPSED, say(
            " That costs {points}\N{NO-BREAK SPACE}points: a defence at {accuracy} accuracy, where {before} can be "
            "had, is no defence.",
            points=f"{100 * lost:.0f}",
            accuracy=kept,
            before=percent(reference.accuracy),
        )
    if not (is_number(setting.recovered) and is_number(reference.recovered)):
        return Kind.UNMEASURED, say(" The leak was not measured, so nothing can be said of it.")
    if reference.recovered < FAINT:
        return Kind.WEAK_ATTACK, say(" The attacks fail without a defence too, so this shows nothing.")
    if setting.recovered >= NEARLY * reference.recovered:
        worse = setting.recovered > reference.recovered
        return Kind.NOTHING, say(" It hides nothing.") if worse else say(" It hides next to nothing.")
    if setting.recovered > 0.5 * reference.recovered:
        return Kind.HIDES_SOME, say(" Most still leaks.")
    return Kind.HIDES_MOST, ""
