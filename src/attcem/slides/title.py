"""The first slide: what was found, in one sentence, and where."""

from attcem.report.verdict import Kind
from attcem.runs.numbers import is_number, percent, ratio
from attcem.slides.page import SOFT, Box, Page, Text
from attcem.slides.story import Story


def title(story: Story) -> list[Page]:
    say, runs = story.say, story.group.runs
    data, backbone, suite = story.group.place
    about = say(
        "{data} · {backbone}: {settings:setting|settings}, {runs:run|runs}",
        data=data,
        backbone=backbone,
        settings=len(story.settings),
        runs=len(runs),
    )
    attacked = say("attacked by the suite {suite}", suite=suite or ", ".join(runs[0].attacks))
    notes = say(
        "A network is cut in two: the device computes the first half and sends what comes out. "
        "The question of this talk is how much of the picture whoever runs the second half can see, and what hiding "
        "it costs. Every number comes from the runs named here."
    )
    place = Text(Box(0.6, 4.9, 12.1, 1.2), (about, attacked), 20, SOFT)
    return [Page(say("Privacy audit of split inference"), headline(story), (place,), notes, opening=True)]


def headline(story: Story) -> str:
    """What hides most and at what price, or why nothing can be said."""
    say, hero, bare = story.say, story.hero, story.bare
    name = story.name(hero.name)
    if hero.undefended:
        return say("Without a defence, the cloud rebuilds the picture with an SSIM of {ssim}", ssim=ratio(hero.ssim))
    if bare is None or not (is_number(hero.recovered) and is_number(bare.recovered)):
        at = ratio(hero.runs[0].mse_ratio)
        return say("{defence}: the attacks end at {ratio} of the error of a blind guess", defence=name, ratio=at)
    if story.kind not in (Kind.HIDES_MOST, Kind.HIDES_SOME):
        return say("None of these defences hides much and keeps the task")
    return say(
        "{defence} lowers the recovered share of the picture from {before} to {after}, for {points} points of accuracy",
        defence=name,
        before=percent(bare.recovered),
        after=percent(hero.recovered),
        points=points_lost(story),
    )


def points_lost(story: Story) -> str:
    return f"{100 * (story.bare.accuracy - story.hero.accuracy):.1f}" if story.bare else ""
