"""What failed: settings that hid little or lost the task, and what the audits flagged."""

from attcem.compare.rows import merge_flags
from attcem.report.verdict import NEARLY, POINTS_LOST, Kind
from attcem.runs.numbers import percent, share
from attcem.slides.fit import tables
from attcem.slides.page import BODY, Box, Page, Text
from attcem.slides.pages import numbered
from attcem.slides.story import Story

FAILED = (Kind.NOTHING, Kind.COLLAPSED, Kind.WEAK_ATTACK, Kind.UNMEASURED)
QUOTED = 4  # flags on a slide


def failures(story: Story) -> list[Page]:
    return [*settings(story), *flags(story)]


def settings(story: Story) -> list[Page]:
    say = story.say
    failed = [(setting, kind) for setting, kind in story.judged if kind in FAILED]
    if not failed:
        return []
    lines = [
        [story.name(setting.name, 80), say(kind.value), share(setting.accuracy), percent(setting.recovered)]
        for setting, kind in failed
    ]
    heading = (say("setting"), say("what happened"), say("accuracy"), say("of the picture recovered"))
    said = say(
        "{failed} of {settings:defended setting|defended settings} failed",
        failed=len(failed),
        settings=len(story.judged),
    )
    notes = say(
        "Next to nothing: {share} of what leaks without a defence still leak. Accuracy lost: more than {points} "
        "points, or near chance; hiding everything is easy where the task no longer works.",
        share=percent(NEARLY),
        points=f"{100 * POINTS_LOST:.0f}",
    )
    return numbered(say, Page(say("What failed"), said, (), notes), tables(BODY, heading, lines))


def flags(story: Story) -> list[Page]:
    say, runs = story.say, story.group.runs
    flagged = [run for run in runs if run.flags]
    if not flagged:
        return []
    merged = merge_flags(("", run.flags) for run in runs)
    text = [
        say("{flag} ({times} of {runs:run|runs})", flag=say.again(flag), times=owners[""], runs=len(runs))
        for flag, owners in merged[:QUOTED]
    ]
    more = len(merged) - len(text)
    if more:
        text.append(say("{more} more: see attcem report.", more=more))
    said = say(
        "{flagged} of {runs:run is|runs are} flagged: an attack there may be weaker than it should be",
        flagged=len(flagged),
        runs=len(runs),
    )
    notes = say(
        "A flag is a reason to doubt a number, and usually names the cure. None of them was left out of the tables."
    )
    return [Page(say("Flags"), said, (Text(Box(*BODY), tuple(text), 20),), notes)]
