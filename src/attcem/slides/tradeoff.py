"""The trade-off: what the task keeps against what leaks."""

from attcem.figures.errors import bar
from attcem.figures.group import Drawn
from attcem.figures.style import DASHES
from attcem.runs.numbers import is_number, mean, ratio, share
from attcem.slides.page import BODY, SOFT, Page, Plot, Series
from attcem.slides.story import Story

LINES = ("SOLID", "DASH", "ROUND_DOT", "DASH_DOT", "LONG_DASH")


def tradeoff(story: Story) -> list[Page]:
    say, group, hero = story.say, story.group, story.hero
    drawn = [curve(story, one, joined=False) for one in group.undefended[:1]]
    drawn += [curve(story, one, joined=len(one.settings) > 1) for one in group.defences]
    if not drawn:
        return []
    accuracies = [y for series in drawn for y in series.ys]
    if is_number(group.mean_image):
        ends = min(accuracies), max(accuracies)
        drawn.append(Series(say("mean image"), [group.mean_image] * 2, ends, SOFT, dash="DASH"))
    across = say("worst-case MSE (further right hides more)")
    plot = Plot(BODY, tuple(drawn), across, say("accuracy"))
    said = say(
        "{defence}: {ratio} of the mean image's error at {accuracy} accuracy",
        defence=story.name(hero.name),
        ratio=ratio(mean([run.mse_ratio for run in hero.runs])),
        accuracy=share(hero.accuracy),
    )
    notes = say(
        "Up is useful, right is private. Every point is one strength of a defence, the bars are one standard "
        "deviation over seeds. The dashed line is the error of the average picture: there, the attacker knows nothing "
        "beyond what anyone knows."
    )
    return [Page(say("Trade-off"), said, (plot,), notes)]


def curve(story: Story, one: Drawn, *, joined: bool) -> Series:
    """A defence at its strengths: means over seeds, with their deviations."""
    errors = [[float(run.worst.mse) for run in setting.runs] for setting in one.settings]
    kept = [[run.accuracy for run in setting.runs] for setting in one.settings]
    return Series(
        story.name(one.name, 34),
        [mean(values) for values in errors],
        [mean(values) for values in kept],
        colour(one),
        one.look.marker,
        dash(one) if joined else "",
        [bar(values) for values in errors],
        [bar(values) for values in kept],
    )


def colour(one: Drawn) -> str:
    return "000000" if one.look.color == "black" else one.look.color.lstrip("#")


def dash(one: Drawn) -> str:
    return LINES[DASHES.index(one.look.linestyle)]
