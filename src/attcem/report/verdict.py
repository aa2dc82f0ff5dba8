"""The verdict: what the numbers say, in plain words, and no more than they say."""

import math
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from attcem.language import phrase
from attcem.runs import Setting
from attcem.runs.config import differences
from attcem.runs.names import UNDEFENDED, short
from attcem.runs.numbers import SPACE, is_number, percent, ratio, share, small
from attcem.runs.settings import Place, most_alike, places
from attcem.types import Result

POINTS_LOST = 0.10  # a defence that costs more accuracy than this has bought its privacy with the task
ABOVE_CHANCE = 0.10  # accuracy below chance plus this share of the way to 1 is called near chance
NEARLY = 0.9  # a defence that leaves this share of the undefended leak has done next to nothing
FAINT = 0.1  # an undefended recovered share below this means that the attacks are too weak to judge by
EXTENTS = {0.75: "rebuilds", 0.4: "rebuilds much of", FAINT: "gets a rough idea of", 0.0: "gets next to nothing of"}
NO_REFERENCE = (
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


def flag_line(results: Sequence[Result]) -> str:
    flags = [len(run.flags) for run in results if run.flags]
    total, runs = sum(flags), len(results)
    text = (
        f"This audit is flagged: {total} flag{'s' * (total > 1)} in {len(flags)} of {runs} run{'s' * (runs > 1)}. "
        "A flagged attack may be weaker than it should be, so a defence may look better than it is."
    )
    return text if flags else ""


def verdicts(settings: Sequence[Setting]) -> list[Verdict]:
    """One per data set and backbone: what hides most comes first, what lost the task or was not measured last."""
    found, last = [], (Kind.COLLAPSED, Kind.UNMEASURED)
    for place, members in places(settings).items():
        bare = [setting for setting in members if setting.undefended]
        judged = [judge(setting, most_alike(setting, bare)) for setting in members if not setting.undefended]
        judged.sort(key=lambda each: (each.kind in last, 0.0 if each.kind in last else each.setting.recovered))
        found.append(Verdict(place, " ".join(map(opening, bare)) or NO_REFERENCE, judged))
    return found


def opening(setting: Setting) -> str:
    if not is_number(setting.recovered):
        return f"Without a defence the leak was not measured; the accuracy is {share(setting.accuracy)}."
    extent = next(words for least, words in EXTENTS.items() if setting.recovered >= least)
    text = (
        f"Without a defence{setting.name.removeprefix(UNDEFENDED)} the cloud {extent} the pictures: "
        f"at {share(setting.accuracy)} accuracy{over_seeds(setting)}, {best_of(setting)} recovers images at "
        f"SSIM{SPACE}{ratio(setting.ssim)}, {percent(setting.recovered)} of what there is to see beyond the average "
        "picture."
    )
    if setting.recovered < FAINT:
        text += " Attacks this weak on an open door say nothing about a defence."
    return text + (" The undefended model itself is near chance." if near_chance(setting) else "")


def best_of(setting: Setting) -> str:
    return f"the best of {setting.attacks} attacks" if setting.attacks > 1 else "the one attack"


def over_seeds(setting: Setting) -> str:
    return f", mean of {setting.seeds} seeds" if setting.seeds > 1 else ""


def near_chance(setting: Setting) -> bool:
    classes = len(setting.runs[0].per_class)
    return classes > 1 and setting.accuracy < 1 / classes + ABOVE_CHANCE * (1 - 1 / classes)


def judge(setting: Setting, reference: Setting | None) -> Judgement:
    kind, remark = classify(setting, reference)
    instead = f" instead of {share(reference.accuracy)}" if reference else ""
    bare_ssim = f"; undefended {ratio(reference.ssim)}" if reference else ""
    bare_share = f", undefended {percent(reference.recovered)}" if reference else ""
    text = (
        f"At {share(setting.accuracy)} accuracy{instead}, {best_of(setting)} recovers images at "
        f"SSIM{SPACE}{ratio(setting.ssim)}{bare_ssim}. That is {percent(setting.recovered)} of what there is to see"
        f"{bare_share} (MSE{SPACE}{small(setting.mse)}{over_seeds(setting)}).{remark}"
    )
    if setting.mse >= setting.baseline("class_mean"):
        text += " Knowing the class alone would show as much."
    text += describe_drop(setting, reference)
    unlike = differences(setting.surroundings, reference.surroundings) if reference else {}
    if unlike:
        listed = (f"{key}={short(ours)} instead of {short(theirs)}" for key, (ours, theirs) in unlike.items())
        text += f" Not like for like: {', '.join(listed)}."
    return Judgement(setting, kind, text, sum(len(run.flags) for run in setting.runs))


def describe_drop(setting: Setting, reference: Setting | None) -> str:
    """How much less of a picture's attributes is told than undefended; nothing where that was not asked of both."""
    drop = reference.described() - setting.described() if reference else math.nan
    if not (reference and is_number(drop)):
        return ""
    told = f"from {share(reference.described())} of the pictures to {share(setting.described())}"
    chance = f"chance {share(setting.described('chance'))}"
    return f" All attributes at once are told {100 * drop:.1f}{SPACE}points less often: {told} ({chance})."


def classify(setting: Setting, reference: Setting | None) -> tuple[Kind, str]:
    """The kindest word that is still true, and a remark."""
    kept = f"defence at {percent(setting.accuracy)} accuracy"
    if near_chance(setting):
        return Kind.COLLAPSED, f" A {kept} is no defence."
    if reference is None:
        return Kind.ALONE, f" The average picture alone has {small(setting.baseline('mean_image'))}."
    lost = reference.accuracy - setting.accuracy
    if lost > POINTS_LOST:
        had = f"a {kept}, where {percent(reference.accuracy)} can be had, is no defence"
        return Kind.COLLAPSED, f" That costs {100 * lost:.0f}{SPACE}points: {had}."
    if not (is_number(setting.recovered) and is_number(reference.recovered)):
        return Kind.UNMEASURED, " The leak was not measured, so nothing can be said of it."
    if reference.recovered < FAINT:
        return Kind.WEAK_ATTACK, " The attacks fail without a defence too, so this shows nothing."
    if setting.recovered >= NEARLY * reference.recovered:
        little = "nothing" if setting.recovered > reference.recovered else "next to nothing"
        return Kind.NOTHING, f" It hides {little}."
    if setting.recovered > 0.5 * reference.recovered:
        return Kind.HIDES_SOME, " Most still leaks."
    return Kind.HIDES_MOST, ""
