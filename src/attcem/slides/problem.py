"""The problem: what the cloud sees without a defence."""

from attcem.figures.group import Drawn
from attcem.figures.pictures import rows_of
from attcem.figures.style import UNDEFENDED
from attcem.runs.numbers import percent, ratio, share, small
from attcem.slides.page import BODY, SOFT, Box, Page, Picture, Text
from attcem.slides.pictures import png_of
from attcem.slides.story import Story

ACROSS, GAP = 4, 0.12  # pictures side by side, and inches between them


def problem(story: Story) -> list[Page]:
    say, bare = story.say, story.bare
    if bare is None:
        return []
    rows = rows_of([Drawn(bare.name, (bare,), UNDEFENDED)])
    text = (
        say(
            "The device computes the first half of the network and sends its output, the latent. The cloud does the "
            "rest."
        ),
        say("The latent is meant for the task, yet it holds most of the picture."),
        say(
            "At {accuracy} accuracy, the best of {attacks:attack|attacks} comes to an SSIM of {ssim} and an MSE of "
            "{mse}.",
            accuracy=share(bare.accuracy),
            attacks=bare.attacks,
            ssim=ratio(bare.ssim),
            mse=small(bare.mse),
        ),
    )
    said = say("Without a defence, the cloud recovers {share} of the picture", share=percent(bare.recovered))
    notes = say(
        "The share is one minus the error of the best attack over the error of the average picture, which anyone can "
        "guess without a latent. The attacker never saw these pictures."
    )
    width = 5.6 if rows else BODY.width
    parts = [Text(Box(BODY.left, BODY.top, width, BODY.height), text, 22), *before_and_after(story, rows[:2])]
    return [Page(say("The problem"), said, tuple(parts), notes)]


def before_and_after(story: Story, rows: list) -> list[Text | Picture]:
    """A row of pictures as they were, and below it as they were rebuilt."""
    if not rows:
        return []
    left, side = 6.7, (12.7 - 6.7 - (ACROSS - 1) * GAP) / ACROSS
    words = [story.say("what the device sees"), story.say("what the cloud rebuilds")]
    parts: list[Text | Picture] = []
    for line, (name, (_, pictures)) in enumerate(zip(words, rows, strict=True)):
        top = BODY.top + line * (side + 0.75)
        parts.append(Text(Box(left, top, 6.0, 0.35), (name,), 16, SOFT))
        for column, picture in enumerate(pictures[:ACROSS]):
            box = Box(left + column * (side + GAP), top + 0.4, side, side)
            parts.append(Picture(box, png_of(picture), f"{name} {column + 1}"))
    return parts
