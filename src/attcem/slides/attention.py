"""The attention maps that `attcem explain` made: where the device looks before it sends."""

import io

import numpy as np
from PIL import Image

from attcem.runs import Setting
from attcem.slides.page import BODY, Box, Page, Picture, Text
from attcem.slides.story import Story
from attcem.types import Explanation

MAPS = ("crossing", "attention", "slots")  # what the names of their files begin with, behind a number
MOST = 2  # slides
WIDEST, GAP = 8.4, 0.3  # inches of a picture, and beside it


def attention(story: Story) -> list[Page]:
    settings = [story.hero, *(setting for setting, _ in story.judged if setting is not story.hero)]
    for setting in settings:
        for run in setting.runs:
            maps = [each for each in run.explanations if each.file.partition("-")[2].startswith(MAPS)]
            if maps:
                return [page(story, setting, each) for each in maps[:MOST]]
    return []


def page(story: Story, setting: Setting, explanation: Explanation) -> Page:
    say = story.say
    first, *more = say.sentences(explanation.caption)
    title = say.again(explanation.title)
    halves = columns(explanation.png)
    room = WIDEST - GAP * (len(halves) - 1)
    scale = min(room / sum(wide for _, (wide, _) in halves), BODY.height / max(high for _, (_, high) in halves))
    left, shown = BODY.left, []
    for png, (wide, high) in halves:
        shown.append(Picture(Box(left, BODY.top, wide * scale, high * scale), png, title))
        left += wide * scale + GAP
    words = Text(
        Box(left, BODY.top, BODY.left + BODY.width - left, BODY.height), (story.name(setting.name), title, *more), 18
    )
    notes = say(
        "Made by attcem explain from validation pictures, neither trained on nor attacked. It explains a result; it is "
        "no measure of what leaks."
    )
    return Page(say("Attention"), first.rstrip(".。"), (*shown, words), notes)


def columns(png: bytes) -> list[tuple[bytes, tuple[int, int]]]:
    """A picture and its size; one that is much taller than wide is cut in two where it is empty, to be seen larger."""
    with Image.open(io.BytesIO(png), formats=["PNG"]) as picture:
        wide, high = picture.size
        pixels = np.asarray(picture.convert("RGB"))
        empty = np.flatnonzero((pixels == pixels[:, :1]).all((1, 2)))
        if high < 1.3 * wide or not len(empty):
            return [(png, (wide, high))]
        middle = int(empty[np.abs(empty - high // 2).argmin()])
        return [encoded(picture.crop((0, top, wide, end))) for top, end in ((0, middle), (middle, high))]


def encoded(picture: Image.Image) -> tuple[bytes, tuple[int, int]]:
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue(), picture.size
